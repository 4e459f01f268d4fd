//! An object as an intent: as JSON, with quantities in the form the server will write them.
//!
//! A quantity is known by its type while it is encoded, and only then: afterwards it is a string
//! like any other. So the encoder itself looks out for it.

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::Value;
use windlass_apimachinery::Quantity;

/// Encodes an object.
pub(crate) fn encode<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<Value> {
    object.serialize(Writer(serde_json::value::Serializer))
}

/// How the server writes a quantity.
fn canonical(text: &str) -> Option<String> {
    Quantity::parse(text.trim()).map(|quantity| quantity.to_string())
}

/// A value whose quantities are to be written the server's way.
struct Written<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Writer(serializer))
    }
}

/// Hands everything on as it is, but for quantities.
struct Writer<S>(S);

macro_rules! hand_on {
    ($($method:ident($type:ty)),* $(,)?) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        }
    )*};
}

impl<S: Serializer> Serializer for Writer<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Writer<S::SerializeSeq>;
    type SerializeTuple = Writer<S::SerializeTuple>;
    type SerializeTupleStruct = Writer<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Writer<S::SerializeTupleVariant>;
    type SerializeMap = Writer<S::SerializeMap>;
    type SerializeStruct = Writer<S::SerializeStruct>;
    type SerializeStructVariant = Writer<S::SerializeStructVariant>;

    hand_on!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
        serialize_f32(f32),
        serialize_f64(f64),
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str),
    );

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Written(value))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        if name == "Quantity"
            && let Ok(Value::String(text)) = serde_json::to_value(value)
            && let Some(written) = canonical(&text)
        {
            return self.0.serialize_newtype_struct(name, &written);
        }
        self.0.serialize_newtype_struct(name, &Written(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_variant(name, index, variant, &Written(value))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(length).map(Writer)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(length).map(Writer)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, length).map(Writer)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let inner = self.0.serialize_tuple_variant(name, index, variant, length);
        inner.map(Writer)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(length).map(Writer)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, length).map(Writer)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let inner = self
            .0
            .serialize_struct_variant(name, index, variant, length);
        inner.map(Writer)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! items {
    ($($trait:ident::$method:ident),* $(,)?) => {$(
        impl<S: $trait> $trait for Writer<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Written(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

macro_rules! fields {
    ($($trait:ident),* $(,)?) => {$(
        impl<S: $trait> $trait for Writer<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.serialize_field(name, &Written(value))
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), S::Error> {
                self.0.skip_field(name)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

items!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
);
fields!(SerializeStruct, SerializeStructVariant);

impl<S: SerializeMap> SerializeMap for Writer<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Written(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{Container, Pod, PodSpec, ResourceRequirements},
        apimachinery::pkg::api::resource::Quantity,
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_found_by_their_type_and_nothing_else_is_touched() {
        let limits = [("cpu", "0.5"), ("memory", "1024Mi")];
        let container = Container {
            name: "1000m".to_owned(),
            args: Some(vec!["0.5".to_owned()]),
            resources: Some(ResourceRequirements {
                limits: Some(
                    limits
                        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
                        .into(),
                ),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        };
        let pod = Pod {
            spec: Some(PodSpec {
                containers: vec![container],
                ..PodSpec::default()
            }),
            ..Pod::default()
        };
        let encoded = encode(&pod).unwrap();
        assert_eq!(
            encoded["spec"]["containers"][0],
            json!({
                "name": "1000m",
                "args": ["0.5"],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
            })
        );
        let mut plain = serde_json::to_value(&pod).unwrap();
        plain["spec"]["containers"][0]["resources"] =
            encoded["spec"]["containers"][0]["resources"].clone();
        assert_eq!(encoded, plain);
    }
}
