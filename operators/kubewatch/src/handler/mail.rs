//! Mail: a message of one part, in plain text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::config::Smtp;
use crate::notice::Notice;
use crate::transport::{Mail, Outgoing};

const SUBJECT: &str = "Kubewatch notification";
/// The longest line of quoted-printable text, without its end.
const LINE: usize = 76;

pub(super) fn mail(of: &Smtp, notice: &Notice, now: Timestamp) -> Outgoing {
    Outgoing::Mail(Mail {
        server: of.clone(),
        content: content(of, notice, now),
    })
}

fn content(of: &Smtp, notice: &Notice, now: Timestamp) -> String {
    let subject = match of.subject.as_str() {
        "" => SUBJECT,
        subject => subject,
    };
    let mut headers: BTreeMap<&str, &str> = BTreeMap::from([
        ("Subject", subject),
        ("To", of.to.as_str()),
        ("From", of.from.as_str()),
    ]);
    headers.extend(
        of.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    // The same for every attempt, so that a mailbox can see that it is one message.
    let id = format!("<{}@kubewatch>", notice.id);
    headers.entry("Message-Id").or_insert(&id);
    let mut text = String::new();
    for (name, value) in headers {
        let _ = write!(text, "{}: {}\r\n", clean(name), encoded(&clean(value)));
    }
    let boundary = windlass::hash_of(&notice.id);
    let date = now.strftime("%a, %d %b %Y %H:%M:%S +0000");
    let _ = write!(
        text,
        "Date: {date}\r\n\
         Content-Type: multipart/alternative;  boundary={boundary}\r\n\
         MIME-Version: 1.0\r\n\r\n\
         --{boundary}\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\
         Content-Type: text/plain; charset=UTF-8\r\n\r\n\
         {}\r\n--{boundary}--\r\n",
        quoted(&notice.message())
    );
    text
}

/// A header has one line: more of them would be headers of their own.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A header's value, encoded if it is not ASCII.
fn encoded(text: &str) -> String {
    if text.is_ascii() {
        text.to_owned()
    } else {
        format!("=?utf-8?b?{}?=", STANDARD.encode(text))
    }
}

/// Text as quoted-printable.
fn quoted(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let (mut done, mut present) = (String::new(), String::new());
        for byte in line.bytes() {
            let piece = match byte {
                b' '..=b'~' if byte != b'=' => char::from(byte).to_string(),
                _ => format!("={byte:02X}"),
            };
            if present.len() + piece.len() >= LINE {
                let _ = write!(done, "{present}=\r\n");
                present.clear();
            }
            present.push_str(&piece);
        }
        if present.ends_with(' ') {
            present.pop();
            present.push_str("=20");
        }
        lines.push(done + &present);
    }
    lines.join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_foreign_text_is_quoted() {
        assert_eq!(quoted("a = b\nc"), "a =3D b\r\nc");
        assert_eq!(quoted("ü "), "=C3=BC=20");
        let long = quoted(&"x".repeat(100));
        assert!(long.lines().all(|line| line.len() <= LINE), "{long}");
        assert_eq!(long.replace("=\r\n", ""), "x".repeat(100));
    }

    #[test]
    fn header_of_two_lines_is_one() {
        assert_eq!(clean("a\r\nBcc: b"), "aBcc: b");
    }
}
