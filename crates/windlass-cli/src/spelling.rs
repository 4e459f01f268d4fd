//! Flags as they stand in texts.
//!
//! Word processors and slides turn `--` into one long dash: `—operations=create` is what a person
//! copies. No flag begins with one, so it can only mean the two.

use std::ffi::OsString;

/// The arguments, with a long dash at the beginning of one read as two short ones.
pub(crate) fn corrected(
    arguments: impl Iterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    arguments.map(|argument| {
        let flag = argument
            .to_str()
            .and_then(|text| text.strip_prefix(['—', '–']));
        match flag {
            Some(flag) if flag.starts_with(|first: char| first.is_ascii_lowercase()) => {
                OsString::from(format!("--{flag}"))
            }
            _ => argument,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_dash_is_two_short_ones() {
        let typed = ["windlass", "—operations=create", "–kind", "—", "a—b", "--x"];
        let read = corrected(typed.iter().map(OsString::from));
        let read: Vec<OsString> = read.collect();
        assert_eq!(
            read,
            [
                "windlass",
                "--operations=create",
                "--kind",
                "—",
                "a—b",
                "--x"
            ]
        );
    }
}
