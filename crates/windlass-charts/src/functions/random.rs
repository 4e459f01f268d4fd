//! Random values: all of them come from the seed of the rendering.

use base64::Engine as _;
use rand::{Rng as _, RngExt as _};

use super::{Context, Result, Row, Type, fail, int};
use crate::template::error::Error;
use crate::template::value::Value;

const I: Type = Type::Int;
const ALPHA: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const NUMERIC: &[u8] = b"0123456789";
const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

pub(super) const TABLE: &[Row] = &[
    ("randAlphaNum", &[I], None, |context, args| {
        text(context, args, ALPHANUMERIC)
    }),
    ("randAlpha", &[I], None, |context, args| {
        text(context, args, ALPHA)
    }),
    ("randNumeric", &[I], None, |context, args| {
        text(context, args, NUMERIC)
    }),
    ("randAscii", &[I], None, |context, args| {
        let printable: Vec<u8> = (b' '..=b'~').collect();
        text(context, args, &printable)
    }),
    ("randBytes", &[I], None, |context, args| {
        let mut buffer = vec![0; count(context, &args[0])?];
        context.env.random().fill_bytes(&mut buffer);
        Ok(Value::str(
            base64::engine::general_purpose::STANDARD.encode(buffer),
        ))
    }),
    ("randInt", &[I, I], None, |context, args| {
        let (from, to) = (int(&args[0]), int(&args[1]));
        if to <= from {
            return fail("invalid argument to Intn");
        }
        Ok(Value::Int(context.env.random().random_range(from..to)))
    }),
    ("uuidv4", &[], None, |context, _| {
        Ok(Value::str(uuid(context)))
    }),
    ("shuffle", &[Type::Str], None, |context, args| {
        let mut chars: Vec<char> = args[0].text().chars().collect();
        for at in (1..chars.len()).rev() {
            let other = context.env.random().random_range(0..=at);
            chars.swap(at, other);
        }
        Ok(Value::str(chars.into_iter().collect::<String>()))
    }),
];

fn count(context: &Context<'_>, value: &Value) -> std::result::Result<usize, Error> {
    let count = usize::try_from(int(value)).unwrap_or(0);
    context.env.fits(count)?;
    context.env.step(count)?;
    Ok(count)
}

fn text(context: &Context<'_>, args: &[Value], alphabet: &[u8]) -> Result {
    let count = count(context, &args[0])?;
    let mut random = context.env.random();
    let letters: Vec<u8> = (0..count)
        .map(|_| alphabet[random.random_range(0..alphabet.len())])
        .collect();
    Ok(Value::str(letters))
}

fn uuid(context: &Context<'_>) -> String {
    let mut bytes = [0_u8; 16];
    context.env.random().fill_bytes(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
