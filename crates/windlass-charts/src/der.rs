//! As much of DER as keys and certificates need.

use num_bigint::BigUint;

/// A value with its tag and length.
pub(crate) fn tagged(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    if body.len() < 0x80 {
        out.push(u8::try_from(body.len()).unwrap_or(0));
    } else {
        let bytes = body.len().to_be_bytes();
        let digits: Vec<u8> = bytes
            .iter()
            .copied()
            .skip_while(|byte| *byte == 0)
            .collect();
        out.push(0x80 | u8::try_from(digits.len()).unwrap_or(0));
        out.extend_from_slice(&digits);
    }
    out.extend_from_slice(body);
    out
}

pub(crate) fn sequence(body: &[u8]) -> Vec<u8> {
    tagged(0x30, body)
}

pub(crate) fn set(body: &[u8]) -> Vec<u8> {
    tagged(0x31, body)
}

pub(crate) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    tagged(0x02, &bytes)
}

pub(crate) fn oid(body: &[u8]) -> Vec<u8> {
    tagged(0x06, body)
}

pub(crate) fn null() -> Vec<u8> {
    tagged(0x05, &[])
}

pub(crate) fn octets(body: &[u8]) -> Vec<u8> {
    tagged(0x04, body)
}

pub(crate) fn bits(body: &[u8]) -> Vec<u8> {
    tagged(0x03, &[&[0], body].concat())
}

/// Reads values one after the other.
#[derive(Clone)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The tag of the next value, its body, and the value whole.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = if *first < 0x80 {
            (usize::from(*first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 || rest.len() < count {
                return None;
            }
            let (digits, rest) = rest.split_at(count);
            let length = digits
                .iter()
                .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
            (length, rest)
        };
        if rest.len() < length {
            return None;
        }
        let (body, after) = rest.split_at(length);
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some((*tag, body, whole))
    }

    /// The body of the next value, if it has the tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, body, _) = self.next()?;
        (found == tag).then_some(body)
    }

    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.take(0x30).map(Self)
    }

    pub(crate) fn integer(&mut self) -> Option<BigUint> {
        self.take(0x02).map(BigUint::from_bytes_be)
    }
}
