//! A program of the operator that the tests of manifests use: `cargo run --example fleet -- manifests`.

#[path = "../tests/controller_gen/ship.rs"]
mod ship;

fn main() -> std::process::ExitCode {
    windlass::main(ship::operator)
}
