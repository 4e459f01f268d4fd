//! Flags as Go's programs take them: `--name=value`, `--name value`, `--name`.

use std::ffi::OsString;

/// The flags of a command line, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flags(Vec<(String, String)>);

impl Flags {
    pub(super) fn read(args: &[OsString]) -> Self {
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        let mut flags = Vec::new();
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')) else {
                continue;
            };
            let (name, value) = if let Some((name, value)) = flag.split_once('=') {
                (name, value.to_owned())
            } else {
                // Whether an unknown flag takes a value is not known: one that stands alone is true.
                let value = args.next_if(|next| !next.starts_with('-'));
                (flag, value.map_or_else(|| "true".to_owned(), Clone::clone))
            };
            flags.push((name.to_owned(), value));
        }
        Self(flags)
    }

    /// The value of a flag; the last one counts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().rev().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The values of a flag that takes a list, separated by commas or repeated.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        let values = self.0.iter().filter(|(known, _)| known == name);
        values.flat_map(|(_, value)| value.split(',')).collect()
    }

    /// Whether a flag is there that does not say no.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "false")
    }

    /// The flags that are none of `known`.
    pub(super) fn others<'a>(&'a self, known: &'a [(&str, &str)]) -> impl Iterator<Item = &'a str> {
        let names = self.0.iter().map(|(name, _)| name.as_str());
        names.filter(|name| !known.iter().any(|(known, _)| known == name))
    }
}

/// What `--help` prints.
pub(super) fn help(about: &str, known: &[(&str, &str)]) -> String {
    let flags = known.iter();
    let flags = flags.map(|(name, what)| format!("      --{name}   {what}\n"));
    format!("{about}\n\nFlags:\n{}", flags.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Flags::read(&args)
    }

    #[test]
    fn flags_are_read_in_every_form() {
        let flags =
            flags("--secure-port=1 --cert-dir /a --allow-privileged --x=a,b --x=c --x -v=2");
        assert_eq!(flags.get("secure-port"), Some("1"));
        assert_eq!(flags.get("cert-dir"), Some("/a"));
        assert!(flags.has("allow-privileged") && !flags.has("help"));
        assert_eq!(flags.list("x"), ["a", "b", "c", "true"]);
        let others: Vec<&str> = flags.others(&[("x", ""), ("cert-dir", "")]).collect();
        assert_eq!(others, ["secure-port", "allow-privileged", "v"]);
    }
}
