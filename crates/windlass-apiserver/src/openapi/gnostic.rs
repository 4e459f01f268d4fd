//! The document of version 2 as a protobuf message: the one form in which client-go reads it.
//!
//! Only what our documents hold is written. The numbers are those of the message's published
//! definition; extensions and other free values are text in it.

use serde_json::Value;

/// A message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0
                .push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or_default());
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, number: u32, inner: &Message) {
        self.bytes(number, &inner.0);
    }

    fn text(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    fn texts(&mut self, number: u32, value: &Value) {
        for item in value.as_array().into_iter().flatten() {
            self.bytes(number, item.as_str().unwrap_or_default().as_bytes());
        }
    }

    fn flag(&mut self, number: u32, value: &Value) {
        if value.as_bool() == Some(true) {
            self.varint(u64::from(number) << 3);
            self.varint(1);
        }
    }

    fn whole(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_i64().filter(|value| *value != 0) {
            self.varint(u64::from(number) << 3);
            #[allow(clippy::cast_sign_loss, reason = "two's complement is the wire's form")]
            self.varint(value as u64);
        }
    }

    fn number(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.varint(u64::from(number) << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A value of any form: its text, which is YAML as all JSON is.
    fn any(&mut self, number: u32, value: &Value) {
        let mut any = Message::default();
        any.bytes(2, value.to_string().as_bytes());
        self.message(number, &any);
    }

    fn anys(&mut self, number: u32, value: &Value) {
        for item in value.as_array().into_iter().flatten() {
            self.any(number, item);
        }
    }

    /// A pair of a name and something.
    fn named(&mut self, number: u32, name: &str, value: &Message) {
        let mut pair = Message::default();
        pair.bytes(1, name.as_bytes());
        pair.message(2, value);
        self.message(number, &pair);
    }

    fn extensions(&mut self, number: u32, value: &Value) {
        let entries = value.as_object().into_iter().flatten();
        for (name, value) in entries.filter(|(name, _)| name.starts_with("x-")) {
            let mut any = Message::default();
            any.bytes(2, value.to_string().as_bytes());
            self.named(number, name, &any);
        }
    }

    /// Every entry of an object, each as a named message.
    fn entries(&mut self, number: u32, value: &Value, write: fn(&Value) -> Message) {
        for (name, value) in value.as_object().into_iter().flatten() {
            self.named(number, name, &write(value));
        }
    }
}

/// The whole document.
pub(super) fn document(value: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &value["swagger"]);
    let mut info = Message::default();
    info.text(1, &value["info"]["title"]);
    info.text(2, &value["info"]["version"]);
    out.message(2, &info);
    let mut paths = Message::default();
    paths.entries(2, &value["paths"], path_item);
    out.message(8, &paths);
    let mut definitions = Message::default();
    definitions.entries(1, &value["definitions"], schema);
    out.message(9, &definitions);
    for requirement in value["security"].as_array().into_iter().flatten() {
        let mut message = Message::default();
        message.entries(1, requirement, |names| {
            let mut list = Message::default();
            list.texts(1, names);
            list
        });
        out.message(12, &message);
    }
    let mut security = Message::default();
    security.entries(1, &value["securityDefinitions"], |definition| {
        let mut key = Message::default();
        key.text(1, &definition["type"]);
        key.text(2, &definition["name"]);
        key.text(3, &definition["in"]);
        let mut item = Message::default();
        item.message(2, &key);
        item
    });
    out.message(13, &security);
    out.0
}

fn path_item(value: &Value) -> Message {
    let mut out = Message::default();
    for (number, method) in [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (8, "patch"),
    ] {
        if value[method].is_object() {
            out.message(number, &operation(&value[method]));
        }
    }
    parameters(&mut out, 9, &value["parameters"]);
    out
}

fn operation(value: &Value) -> Message {
    let mut out = Message::default();
    out.texts(6, &value["produces"]);
    out.texts(7, &value["consumes"]);
    parameters(&mut out, 8, &value["parameters"]);
    let mut responses = Message::default();
    responses.entries(1, &value["responses"], response);
    out.message(9, &responses);
    out.texts(10, &value["schemes"]);
    out.extensions(13, value);
    out
}

fn response(value: &Value) -> Message {
    let mut response = Message::default();
    response.text(1, &value["description"]);
    if value["schema"].is_object() {
        let mut item = Message::default();
        item.message(1, &schema(&value["schema"]));
        response.message(2, &item);
    }
    let mut out = Message::default();
    out.message(1, &response);
    out
}

fn parameters(out: &mut Message, number: u32, value: &Value) {
    for parameter in value.as_array().into_iter().flatten() {
        let mut item = Message::default();
        item.message(1, &one_parameter(parameter));
        out.message(number, &item);
    }
}

fn one_parameter(value: &Value) -> Message {
    let (mut out, mut inner) = (Message::default(), Message::default());
    if value["in"] == "body" {
        inner.text(2, &value["name"]);
        inner.text(3, &value["in"]);
        inner.flag(4, &value["required"]);
        inner.message(5, &schema(&value["schema"]));
        out.message(1, &inner);
        return out;
    }
    inner.flag(1, &value["required"]);
    inner.text(2, &value["in"]);
    inner.text(4, &value["name"]);
    // The two forms differ by one field, which moves the others.
    let (form, ty, unique) = if value["in"] == "path" {
        (4, 5, 19)
    } else {
        (3, 6, 20)
    };
    inner.text(ty, &value["type"]);
    inner.flag(unique, &value["uniqueItems"]);
    let mut not_body = Message::default();
    not_body.message(form, &inner);
    out.message(2, &not_body);
    out
}

fn schema(value: &Value) -> Message {
    let mut out = Message::default();
    out.text(1, &value["$ref"]);
    out.text(2, &value["format"]);
    out.text(3, &value["title"]);
    out.text(4, &value["description"]);
    out.number(6, &value["multipleOf"]);
    out.number(7, &value["maximum"]);
    out.flag(8, &value["exclusiveMaximum"]);
    out.number(9, &value["minimum"]);
    out.flag(10, &value["exclusiveMinimum"]);
    out.whole(11, &value["maxLength"]);
    out.whole(12, &value["minLength"]);
    out.text(13, &value["pattern"]);
    out.whole(14, &value["maxItems"]);
    out.whole(15, &value["minItems"]);
    out.flag(16, &value["uniqueItems"]);
    out.whole(17, &value["maxProperties"]);
    out.whole(18, &value["minProperties"]);
    out.texts(19, &value["required"]);
    out.anys(20, &value["enum"]);
    let mut more = Message::default();
    match &value["additionalProperties"] {
        Value::Object(_) => more.message(1, &schema(&value["additionalProperties"])),
        Value::Bool(_) => more.flag(2, &value["additionalProperties"]),
        _ => {}
    }
    if !value["additionalProperties"].is_null() {
        out.message(21, &more);
    }
    if value["type"].is_string() {
        let mut ty = Message::default();
        ty.text(1, &value["type"]);
        out.message(22, &ty);
    }
    if value["items"].is_object() {
        let mut items = Message::default();
        items.message(1, &schema(&value["items"]));
        out.message(23, &items);
    }
    if value["properties"].is_object() {
        let mut properties = Message::default();
        properties.entries(1, &value["properties"], schema);
        out.message(25, &properties);
    }
    out.extensions(31, value);
    out
}
