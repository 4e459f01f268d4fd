//! [`Plain`]: objects that name no owner and have not been asked to go.
//!
//! Nearly all objects of a cluster are plain, and nothing is ever done to one: it is enough to
//! recognise it when a dependent names it. So no more is kept of it than its uid, its kind and a
//! [`Mark`], some sixty bytes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::graph::Uid;
use crate::resource::GroupKind;

/// A hash of an object's kind, namespace and name. It is looked at beside a uid only, which is
/// already unique: it says whether a reference means the object that has the uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

impl Mark {
    pub(crate) fn of(kind: &GroupKind, namespace: Option<&str>, name: &str) -> Self {
        // With keys that never change: two runs of one seed stay alike.
        let mut hasher = DefaultHasher::new();
        (&kind.group, &kind.kind, namespace, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A uid, in 16 bytes where it is written as all API servers write it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Id {
    fn of(text: &str) -> Self {
        uuid(text).map_or_else(|| Self::Text(text.into()), Self::Uuid)
    }

    fn text(&self) -> Uid {
        match self {
            Self::Text(text) => text.as_ref().to_owned(),
            Self::Uuid(bytes) => {
                let mut text = String::with_capacity(36);
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        text.push('-');
                    }
                    for digit in [byte >> 4, byte & 15] {
                        text.extend(char::from_digit(digit.into(), 16));
                    }
                }
                text
            }
        }
    }
}

/// The bytes of a uid in lower-case hexadecimal digits, in groups of 8, 4, 4, 4 and 12.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (at, char) in text.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if *char != b'-' {
                return None;
            }
            continue;
        }
        let digit = match char {
            b'0'..=b'9' => char - b'0',
            b'a'..=b'f' => char - b'a' + 10,
            _ => return None,
        };
        let byte: &mut u8 = bytes.get_mut(digits / 2)?;
        *byte = (*byte << 4) | digit;
        digits += 1;
    }
    Some(bytes)
}

#[derive(Debug)]
struct Entry {
    mark: Mark,
    /// Which of the kinds it is of.
    kind: usize,
}

/// All plain objects.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    objects: BTreeMap<Id, Entry>,
    /// Every kind there was an object of.
    kinds: Vec<GroupKind>,
}

impl Plain {
    /// Adds an object, or changes it.
    pub(crate) fn insert(&mut self, uid: &str, kind: &GroupKind, mark: Mark) {
        let found = self.kinds.iter().position(|one| one == kind);
        let kind = found.unwrap_or_else(|| {
            self.kinds.push(kind.clone());
            self.kinds.len() - 1
        });
        self.objects.insert(Id::of(uid), Entry { mark, kind });
    }

    /// Removes an object; whether it was there.
    pub(crate) fn remove(&mut self, uid: &str) -> bool {
        self.objects.remove(&Id::of(uid)).is_some()
    }

    /// The mark of the object with this uid.
    pub(crate) fn mark(&self, uid: &str) -> Option<Mark> {
        self.objects.get(&Id::of(uid)).map(|entry| entry.mark)
    }

    /// The uids of all objects of a kind.
    pub(crate) fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = Uid> {
        let kind = self.kinds.iter().position(|one| one == kind);
        self.objects
            .iter()
            .filter(move |(_, entry)| Some(entry.kind) == kind)
            .map(|(id, _)| id.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_of_any_form_comes_back_as_it_was() {
        for uid in [
            "0123a567-89ab-cdef-0123-456789abcdef",
            "0123A567-89ab-cdef-0123-456789abcdef",
            "0123a567089ab-cdef-0123-456789abcdef",
            "0123a567-89ab-cdef-0123-456789abcde-",
            "a",
            "",
        ] {
            assert_eq!(Id::of(uid).text(), uid);
        }
        let usual = Id::of("0123a567-89ab-cdef-0123-456789abcdef");
        assert!(matches!(usual, Id::Uuid(_)), "{usual:?}");
    }

    #[test]
    fn entry_of_a_plain_object_is_small() {
        assert!(size_of::<(Id, Entry)>() <= 40);
    }
}
