//! The operator in a cluster, with receivers in the process of the test.

mod crashes_and_rights;
mod receiver;
mod scenarios;
