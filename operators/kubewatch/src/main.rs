//! The kubewatch operator as a program.

windlass::main!(kubewatch_operator::program);
