//! [`Packed`]: text that is kept small.
//!
//! Objects of one kind repeat each other: the same fields, the same defaults, the same owner. Each
//! is kept as what is different from an example, the first that a store was given. What does not
//! become smaller that way is kept as it is.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// The longest example that is of use: packing looks no further back than 64 KiB.
const LONGEST_EXAMPLE: usize = 16 << 10;

/// What others are compared with: the first that comes.
#[derive(Debug, Default)]
pub(crate) struct Example(OnceLock<Arc<[u8]>>);

impl Example {
    fn of(&self, text: &[u8]) -> &Arc<[u8]> {
        self.0
            .get_or_init(|| text[..text.len().min(LONGEST_EXAMPLE)].into())
    }
}

/// A text, perhaps packed.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// The example it is different from, and how long it is; none where it is kept as it is.
    example: Option<(Arc<[u8]>, u32)>,
}

impl Packed {
    pub(crate) fn new(text: &[u8], example: &Example) -> Self {
        let example = example.of(text);
        let packed = compress_with_dict(text, example);
        match u32::try_from(text.len()) {
            Ok(length) if packed.len() < text.len() => Self {
                bytes: Box::from(packed.as_slice()),
                example: Some((Arc::clone(example), length)),
            },
            _ => Self {
                bytes: text.into(),
                example: None,
            },
        }
    }

    pub(crate) fn unpacked(&self) -> Cow<'_, [u8]> {
        match &self.example {
            None => Cow::Borrowed(&self.bytes),
            Some((example, length)) => {
                // What was packed here can be unpacked.
                let text = decompress_with_dict(&self.bytes, *length as usize, example);
                Cow::Owned(text.unwrap_or_default())
            }
        }
    }

    /// How long the text is.
    pub(crate) fn text_len(&self) -> usize {
        self.example
            .as_ref()
            .map_or(self.bytes.len(), |(_, length)| *length as usize)
    }

    /// How much memory it takes, besides this value itself.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_alike_takes_little() {
        let example = Example::default();
        let object = |nth: usize| {
            let fields = (0..100).map(|field| format!("\"field-{field}\":\"value {}\"", field * 7));
            format!(
                "{{\"name\":\"object-{nth}\",{}}}",
                fields.collect::<Vec<_>>().join(",")
            )
        };
        for nth in 0..20 {
            let text = object(nth);
            let packed = Packed::new(text.as_bytes(), &example);
            assert_eq!(packed.unpacked(), text.as_bytes());
            assert!(
                packed.len() * 20 < text.len(),
                "{} of {}",
                packed.len(),
                text.len()
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_packed_comes_back(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..6)) {
            let example = Example::default();
            for text in &texts {
                let packed = Packed::new(text, &example);
                prop_assert!(packed.len() <= text.len());
                prop_assert_eq!(packed.unpacked(), text.as_slice());
            }
        }
    }

    #[test]
    fn a_long_one_comes_back_too() {
        let example = Example::default();
        for text in [
            vec![b'a'; 200_000],
            (0..300_000_u32).flat_map(u32::to_le_bytes).collect(),
        ] {
            assert_eq!(Packed::new(&text, &example).unpacked(), text.as_slice());
        }
    }
}
