//! Replaces what differs from run to run by placeholders.
//!
//! | what | becomes |
//! | --- | --- |
//! | ages, with how often something happened | `<age>` |
//! | times of day | `<time>` |
//! | uids, resourceVersions | `<uid>`, `<rv>` |
//! | addresses and ports that the server chose | `<ip>`, `<port>` |
//! | hashes and random endings in names of what controllers make | `<hash>`, `<random>` |
//! | when and in which process a warning was logged | nothing |
//! | the spaces between columns, whose width follows from the above | two |

use std::sync::LazyLock;

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        // Times before ages: they end in what looks like one.
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (
            r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000",
            "<time>",
        ),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "<time>"),
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "<uid>",
        ),
        (r#"(?i)(resource ?version"?: +)"?\d+"?"#, "${1}<rv>"),
        (r"https://127\.0\.0\.1:\d+", "<server>"),
        (r"\b10\.96\.\d+\.\d+\b", "<ip>"),
        (r"\b3[0-2]\d{3}(/TCP|\b)", "<port>${1}"),
        (r"\((x\d+ over )?(\d+[smhdy])+\)", ""),
        (
            r"(?m)(^|\s)(\d+[smhdy])+( ago)?( \(x\d+ over [^)]*\))?(\s|$)",
            "${1}<age>${5}",
        ),
        (r"\bweb-[0-9a-z]{6,10}-[0-9a-z]{5}\b", "web-<hash>-<random>"),
        (r"\bweb-[0-9bcdf-hj-np-tv-xz]{6,10}\b", "web-<hash>"),
        (r"pod-template-hash=[0-9a-z]+", "pod-template-hash=<hash>"),
        (r"(kube-api-access-)[0-9a-z]{5}", "${1}<random>"),
        (r"X509SHA256=[0-9a-f]+", "X509SHA256=<hash>"),
        (r"(?m)^([WE])\d{4} [0-9:.]+ +\d+ ", "${1} "),
        (r"(?m)[ \t]+$", ""),
        (r"  +", "  "),
    ]
    .into_iter()
    .map(|(pattern, with)| (Regex::new(pattern).expect("the patterns are right"), with))
    .collect()
});

/// The text without what differs from run to run, line by line; sorted when it has no order.
pub(super) fn normalise(text: &str, ordered: bool) -> String {
    let mut text = text.replace("\n\n", "\n.\n");
    for (pattern, with) in RULES.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    let mut lines: Vec<&str> = text.lines().collect();
    if !ordered {
        lines.sort_unstable();
    }
    // An older kubectl describes what a Secret holds in the order of a Go map: in any.
    let is_size = |line: &str| line.ends_with(" bytes");
    for sizes in lines.chunk_by_mut(|one, next| is_size(one) && is_size(next)) {
        sizes.sort_unstable();
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_becomes_a_placeholder() {
        let table = "NAME                   AGE\nweb-6b7f9c5d4-x2x2p    2m3s\n";
        assert_eq!(
            normalise(table, true),
            "NAME  AGE\nweb-<hash>-<random>  <age>\n"
        );
        let secret = "Data\n====\nuser:  2 bytes\npass:  6 bytes\n";
        assert_eq!(
            normalise(secret, true),
            "Data\n====\npass:  6 bytes\nuser:  2 bytes\n"
        );
        let event = "Normal  Scaled  5s (x2 over 7s)  deployment-controller  up\n";
        assert_eq!(
            normalise(event, true),
            "Normal  Scaled  <age>  deployment-controller  up\n"
        );
        assert_eq!(normalise("b\na\n", false), "a\nb\n");
        assert_eq!(normalise("web-sites stay\n", true), "web-sites stay\n");
    }
}
