//! Real processes: what the runtime does with them.

mod bench;
mod health;
mod life;
mod server;
mod survival;

/// How this program is called to become a shim: as the test below.
pub(crate) fn shim() -> Vec<std::ffi::OsString> {
    let program = std::env::current_exe().expect("a test knows where it is");
    let test = ["--ignored", "--nocapture", "--exact"].map(Into::into);
    let name = "process::tests::a_shim".into();
    [program.into()]
        .into_iter()
        .chain(test)
        .chain([name])
        .collect()
}

#[test]
#[ignore = "no test: what this program becomes when a node under test starts it again"]
fn a_shim() {
    let mut args = std::env::args().skip_while(|arg| arg != crate::shim::SUBCOMMAND);
    if let Some(folder) = args.nth(1) {
        crate::shim::main(std::path::Path::new(&folder));
    }
}
