//! What bodies are read as. The bodies and their JSON in `tests/protobuf/` were made by Go's own
//! types and codecs (`scripts/protobuf-bodies`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::decode;
use crate::http::Expected;

#[derive(Deserialize)]
struct Body {
    /// `group/version/Kind`, and which of its bodies this is.
    name: String,
    bytes: String,
    #[serde(default)]
    json: Value,
    /// What Go says when it cannot read the bytes.
    #[serde(default)]
    error: String,
}

const BODIES: &str = include_str!("../../../tests/protobuf/bodies.jsonl");

fn bodies() -> impl Iterator<Item = Body> {
    BODIES
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is a body"))
}

fn read(bytes: &[u8]) -> Result<Value, String> {
    let expected = Expected {
        group: "",
        version: "v1",
        kind: "Pod",
        has_message: true,
    };
    decode(bytes, &expected).map_err(|failure| failure.why)
}

#[test]
fn every_body_is_read_as_go_reads_it() {
    let (mut whole, mut broken) = (0, 0);
    let mut wrong = Vec::new();
    for body in bodies() {
        let bytes = STANDARD.decode(&body.bytes).expect("base64");
        let expected = if body.error.is_empty() {
            whole += 1;
            Ok(body.json)
        } else {
            broken += 1;
            Err(body.error)
        };
        let found = read(&bytes);
        if found != expected {
            let show = |read: &Result<Value, String>| match read {
                Ok(value) => value.to_string(),
                Err(why) => format!("error: {why}"),
            };
            wrong.push(format!(
                "{}\n   go: {}\n ours: {}",
                body.name,
                show(&expected),
                show(&found)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        whole + broken,
        wrong[..wrong.len().min(10)].join("\n")
    );
    assert!(
        whole > 300 && broken > 300,
        "{whole} whole, {broken} broken bodies"
    );
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
    out
}

fn field(number: usize, content: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2), &varint(content.len()), content].concat()
}

fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, message)].concat()
}

#[test]
fn a_body_that_means_too_much_is_refused() {
    // Two bytes each: a container in which nothing is set.
    let containers = [0x12, 0x00].repeat(600_000);
    let pod = body("v1", "Pod", &field(2, &containers));
    let refused = "the message has more values than an object can have";
    assert_eq!(read(&pod), Err(refused.into()));
}

#[test]
fn a_body_that_is_nested_too_deep_is_refused() {
    // spec.versions[0].schema.openAPIV3Schema, and in it one `not` in the other.
    let definition = |levels: usize| {
        let schema = (0..levels).fold(Vec::new(), |inner, _| field(28, &inner));
        let version = field(4, &field(1, &schema));
        let spec = field(7, &version);
        body(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &field(2, &spec),
        )
    };
    let read_levels = |levels: usize| read(&definition(levels));
    assert!(read_levels(3).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["not"]["not"]["not"].is_object());
    for levels in [100, 1_000, 20_000] {
        assert_eq!(read_levels(levels), Err("exceeded max depth".into()));
    }
}

proptest! {
    /// Whatever is sent: an answer, and no panic.
    #[test]
    fn no_bytes_panic(
        which in 0..10_000_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        shorten in any::<bool>(),
    ) {
        let count = BODIES.lines().count();
        let line = BODIES.lines().nth(which % count).unwrap_or_default();
        let body: Body = serde_json::from_str(line).expect("a body");
        let mut bytes = STANDARD.decode(&body.bytes).expect("base64");
        for (at, byte) in changes {
            if bytes.len() > 4 {
                let at = 4 + at.index(bytes.len() - 4);
                bytes[at] = byte;
            }
        }
        if shorten && !bytes.is_empty() {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = read(&bytes);
    }

    #[test]
    fn no_noise_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&[b"k8s\0".to_vec(), noise].concat());
    }
}
