//! From the bytes of a message to what its fields hold.
//!
//! As Go's generated decoders do it: a field that comes twice counts the last time, or adds to a
//! list or a map, or is merged when it is a message; unknown fields are passed over.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{self, Field, Form, Kind, Many, Message};
use super::wire::{BYTES, FIXED64, Reader, VARINT, WireError};
use crate::decode::scalar::canonical_quantity;
use crate::json::MAX_DEPTH;

/// A message that was read. `Slot`s are by the place of their field in the type.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    pub(super) message: &'static Message,
    slots: Vec<(usize, Slot<'a>)>,
    sent: bool,
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Slot<'a> {
    Plain(Value),
    Bytes(&'a [u8]),
    Message(Parsed<'a>),
    List(Vec<Slot<'a>>),
    Map(BTreeMap<String, Slot<'a>>),
}

impl<'a> Parsed<'a> {
    /// A message in which nothing is set.
    pub(super) fn empty(message: &'static Message) -> Self {
        Self {
            message,
            slots: Vec::new(),
            sent: false,
        }
    }

    /// Whether there was a byte of it.
    pub(super) fn was_sent(&self) -> bool {
        self.sent
    }

    /// Reads a message of that type.
    pub(super) fn read(message: &'static Message, data: &'a [u8]) -> Result<Self, WireError> {
        let mut parsed = Self::empty(message);
        parsed.merge(data, 0)?;
        Ok(parsed)
    }

    pub(super) fn slot(&self, place: usize) -> Option<&Slot<'a>> {
        let mut slots = self.slots.iter();
        slots.find_map(|(taken, slot)| (*taken == place).then_some(slot))
    }

    fn slot_or(&mut self, place: usize, new: impl FnOnce() -> Slot<'a>) -> Option<&mut Slot<'a>> {
        let found = self.slots.iter().position(|(taken, _)| *taken == place);
        let at = found.unwrap_or_else(|| {
            self.slots.push((place, new()));
            self.slots.len() - 1
        });
        self.slots.get_mut(at).map(|(_, slot)| slot)
    }

    fn merge(&mut self, data: &'a [u8], depth: usize) -> Result<(), WireError> {
        if depth > MAX_DEPTH {
            return Err(WireError::TooDeep);
        }
        let message = self.message;
        if matches!(message.form, Form::Time | Form::MicroTime) {
            // Each time stands for itself.
            self.slots.clear();
        }
        self.sent = !data.is_empty();
        let mut reader = Reader::new(data);
        while !reader.is_at_end() {
            let begin = reader.at();
            let tag = reader.tag()?;
            if tag.wire_type == 4 {
                return Err(WireError::StrayEndOfGroup {
                    message: message.name.clone(),
                });
            }
            if tag.number <= 0 {
                return Err(WireError::IllegalTag {
                    message: message.name.clone(),
                    number: tag.number,
                    tag: tag.raw,
                });
            }
            if let Some((place, field)) = message.field(tag.number) {
                self.field(place, field, tag.wire_type, &mut reader, depth)?;
                self.check()?;
            } else {
                reader.go_to(begin);
                reader.skip(reader.len())?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        place: usize,
        field: &'static Field,
        wire_type: u8,
        reader: &mut Reader<'a>,
        depth: usize,
    ) -> Result<(), WireError> {
        let wanted = match (field.many, field.kind) {
            (Many::Map, _) => BYTES,
            (_, Kind::Bool | Kind::Int32 | Kind::Int64) => VARINT,
            (_, Kind::Double) => FIXED64,
            _ => BYTES,
        };
        let packed = field.many == Many::List && wanted != BYTES && wire_type == BYTES;
        if wire_type != wanted && !packed {
            return Err(WireError::WrongWireType {
                wire_type,
                field: field.go.clone(),
            });
        }
        match field.many {
            Many::One => {
                if let Kind::Message(id) = field.kind {
                    let data = reader.bytes()?;
                    let kind = message(id)?;
                    let slot = self.slot_or(place, || Slot::Message(Parsed::empty(kind)));
                    if let Some(Slot::Message(inner)) = slot {
                        inner.merge(data, depth + 1)?;
                    }
                } else {
                    let value = one(field.kind, reader, depth)?;
                    self.slots.retain(|(taken, _)| *taken != place);
                    self.slots.push((place, value));
                }
            }
            Many::List => {
                let mut values = Vec::new();
                if packed {
                    let mut inner = Reader::new(reader.bytes()?);
                    while !inner.is_at_end() {
                        values.push(one(field.kind, &mut inner, depth)?);
                    }
                } else {
                    values.push(one(field.kind, reader, depth)?);
                }
                if let Some(Slot::List(list)) = self.slot_or(place, || Slot::List(Vec::new())) {
                    list.append(&mut values);
                }
            }
            Many::Map => {
                let (key, value) = entry(field.kind, reader, depth)?;
                let slot = self.slot_or(place, || Slot::Map(BTreeMap::new()));
                if let Some(Slot::Map(map)) = slot {
                    map.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// What can be wrong with a message although its bytes are well-formed.
    fn check(&self) -> Result<(), WireError> {
        if self.message.form == Form::Quantity
            && let Some(Slot::Plain(Value::String(text))) = self.slot(0)
        {
            canonical_quantity(text)?;
        }
        Ok(())
    }
}

fn message(id: usize) -> Result<&'static Message, WireError> {
    let found = facts::get().message(id);
    found.ok_or_else(|| WireError::Meaning("a type that is not known".to_owned()))
}

/// One value.
fn one<'a>(kind: Kind, reader: &mut Reader<'a>, depth: usize) -> Result<Slot<'a>, WireError> {
    Ok(match kind {
        Kind::String => Slot::Plain(text(reader.bytes()?).into()),
        Kind::Bytes => Slot::Bytes(reader.bytes()?),
        Kind::Bool => Slot::Plain((reader.varint()? != 0).into()),
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "as Go does"
        )]
        Kind::Int32 => Slot::Plain((reader.varint()? as i32).into()),
        #[allow(clippy::cast_possible_wrap, reason = "as Go does")]
        Kind::Int64 => Slot::Plain((reader.varint()? as i64).into()),
        Kind::Double => Slot::Plain(super::json::double(f64::from_bits(reader.fixed64()?))?),
        Kind::Message(id) => {
            let mut inner = Parsed::empty(message(id)?);
            inner.merge(reader.bytes()?, depth + 1)?;
            Slot::Message(inner)
        }
    })
}

/// Text, which JSON can only hold as Unicode: Go writes a mark for each byte that is not.
fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

/// One entry of a map. Go reads key and value up to the end of the whole message, not of the entry,
/// whatever their tags say about their form.
fn entry<'a>(
    kind: Kind,
    reader: &mut Reader<'a>,
    depth: usize,
) -> Result<(String, Slot<'a>), WireError> {
    let end = reader.end_of_bytes()?;
    let (mut key, mut value) = (String::new(), None);
    while reader.at() < end {
        let begin = reader.at();
        match reader.tag()?.number {
            1 => key = text(reader.bytes()?),
            2 => value = Some(one(kind, reader, depth)?),
            _ => {
                reader.go_to(begin);
                reader.skip(end)?;
            }
        }
    }
    reader.go_to(end);
    let value = match value {
        Some(value) => value,
        None => zero(kind)?,
    };
    Ok((key, value))
}

/// What an entry has that says nothing of its value.
fn zero<'a>(kind: Kind) -> Result<Slot<'a>, WireError> {
    Ok(match kind {
        Kind::String | Kind::Bytes => Slot::Plain("".into()),
        Kind::Bool => Slot::Plain(false.into()),
        Kind::Int32 | Kind::Int64 | Kind::Double => Slot::Plain(0.into()),
        Kind::Message(id) => Slot::Message(Parsed::empty(message(id)?)),
    })
}
