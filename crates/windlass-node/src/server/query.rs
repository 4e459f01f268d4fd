//! The query of a request.

/// The values of a parameter, decoded.
pub(super) fn all(query: &str, name: &str) -> Vec<String> {
    let pairs = query.split('&').filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then(|| decode(value))
    });
    pairs.collect()
}

/// Whether a parameter says yes.
pub(super) fn flag(query: &str, name: &str) -> bool {
    let value = all(query, name).into_iter().next();
    value.is_some_and(|value| value == "1" || value == "true")
}

/// A text with its `%XX` and `+` resolved; what is not one stays.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, bytes[at]) {
            (Some(byte), _) => {
                out.push(byte);
                at += 2;
            }
            (None, b'+') => out.push(b' '),
            (None, byte) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_a_query() {
        let query = "command=sh&command=-c&command=echo+a%26b%20%25&tty=1&input=0";
        assert_eq!(all(query, "command"), ["sh", "-c", "echo a&b %"]);
        assert!(flag(query, "tty") && !flag(query, "input") && !flag(query, "error"));
    }
}
