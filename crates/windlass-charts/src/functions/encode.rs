//! Encodings, paths and JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Result, Row, Type, fail};
use crate::json;
use crate::template::error::Error;
use crate::template::value::Value;

const S: Type = Type::Str;
const A: Type = Type::Any;

pub(super) const TABLE: &[Row] = &[
    ("b64enc", &[S], None, |_, args| {
        Ok(Value::str(STANDARD.encode(args[0].bytes())))
    }),
    ("b64dec", &[S], None, |_, args| {
        Ok(Value::str(decode_base64(args[0].bytes())))
    }),
    ("b32enc", &[S], None, |_, args| {
        Ok(Value::str(encode_base32(args[0].bytes())))
    }),
    ("b32dec", &[S], None, |_, args| {
        Ok(Value::str(decode_base32(args[0].bytes())))
    }),
    ("base", &[S], None, |_, args| path(args, base)),
    ("dir", &[S], None, |_, args| path(args, dir)),
    ("clean", &[S], None, |_, args| path(args, clean)),
    ("ext", &[S], None, |_, args| path(args, ext)),
    ("isAbs", &[S], None, |_, args| {
        Ok(Value::Bool(args[0].bytes().starts_with(b"/")))
    }),
    ("osBase", &[S], None, |_, args| path(args, base)),
    ("osDir", &[S], None, |_, args| path(args, dir)),
    ("osClean", &[S], None, |_, args| path(args, clean)),
    ("osExt", &[S], None, |_, args| path(args, ext)),
    ("osIsAbs", &[S], None, |_, args| {
        Ok(Value::Bool(args[0].bytes().starts_with(b"/")))
    }),
    // Helm's `toJson`, `mustToJson` and `fromJson` are with Helm's own.
    ("toPrettyJson", &[A], None, |_, args| {
        Ok(Value::str(
            json::encode_pretty(&args[0]).unwrap_or_default(),
        ))
    }),
    ("mustToPrettyJson", &[A], None, |_, args| {
        json::encode_pretty(&args[0])
            .map(Value::str)
            .map_err(Error::plain)
    }),
    ("toRawJson", &[A], None, |_, args| {
        json::encode(&args[0], false)
            .map(Value::str)
            .map_err(Error::plain)
    }),
    ("mustToRawJson", &[A], None, |_, args| {
        json::encode(&args[0], false)
            .map(Value::str)
            .map_err(Error::plain)
    }),
    ("mustFromJson", &[S], None, |_, args| {
        match json::decode(args[0].bytes()) {
            Ok(value) => Ok(value),
            Err(why) => fail(why),
        }
    }),
];

/// Where base64 ends that is none: the place of the first wrong byte.
fn decode_base64(bytes: &[u8]) -> Vec<u8> {
    let kept: Vec<u8> = (bytes.iter().copied())
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    match STANDARD.decode(&kept) {
        Ok(decoded) => decoded,
        Err(_) => {
            let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            let good = kept.iter().take_while(|byte| is_digit(byte)).count();
            let at = match kept.get(good) {
                None => kept.len() / 4 * 4,
                Some(b'=') if good % 4 >= 2 => match kept[good..].iter().position(|b| *b != b'=') {
                    Some(after) => good + after,
                    None if good % 4 == 2 && kept.len() == good + 1 => kept.len(),
                    None => good + (4 - good % 4),
                },
                Some(_) => good,
            };
            format!("illegal base64 data at input byte {at}").into_bytes()
        }
    }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn encode_base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut buffer = [0_u8; 8];
        buffer[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(buffer);
        let digits = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            if index < digits {
                let digit = (bits >> (35 - 5 * index)) & 31;
                out.push(char::from(BASE32[usize::try_from(digit).unwrap_or(0)]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn decode_base32(bytes: &[u8]) -> Vec<u8> {
    let kept: Vec<u8> = (bytes.iter().copied())
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    let illegal = |at: usize| format!("illegal base32 data at input byte {at}").into_bytes();
    let digits = kept
        .iter()
        .rposition(|byte| *byte != b'=')
        .map_or(0, |at| at + 1);
    let mut out = Vec::new();
    for (index, chunk) in kept[..digits].chunks(8).enumerate() {
        let mut bits = 0_u64;
        for (offset, byte) in chunk.iter().enumerate() {
            let Some(digit) = BASE32.iter().position(|other| other == byte) else {
                return illegal(index * 8 + offset);
            };
            bits |= (digit as u64) << (35 - 5 * offset);
        }
        if matches!(chunk.len(), 1 | 3 | 6) {
            return illegal(index * 8 + chunk.len());
        }
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + chunk.len() * 5 / 8]);
    }
    if !kept.len().is_multiple_of(8) {
        return illegal(kept.len());
    }
    out
}

fn path(args: &[Value], change: fn(&str) -> String) -> Result {
    Ok(Value::str(change(&args[0].text())))
}

/// The last part of a path.
pub(crate) fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some("") | None => "/".to_owned(),
        Some(last) => last.to_owned(),
    }
}

fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

fn ext(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rfind('.')
        .map_or(String::new(), |at| last[at..].to_owned())
}

/// The shortest path that means the same.
pub(crate) fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                None if rooted => {}
                _ => parts.push(part),
            },
            other => parts.push(other),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}
