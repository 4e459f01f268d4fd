//! Helm's own functions.

use std::rc::Rc;

use super::{Context, Result, Row, Type, fail};
use crate::template::error::Error;
use crate::template::exec::{self, Templates};
use crate::template::parse;
use crate::template::value::Value;
use crate::{json, toml, yaml};

const A: Type = Type::Any;
const S: Type = Type::Str;

/// What marks the message of a chart in an error.
pub(crate) const MESSAGE_START: &str = "HELM_ERR_START";
pub(crate) const MESSAGE_END: &str = "HELM_ERR_END";
/// How often a template may be within itself.
const MAX_NESTED: usize = 1000;

pub(super) const TABLE: &[Row] = &[
    ("include", &[S, A], None, include),
    ("tpl", &[S, A], None, tpl),
    ("required", &[S, A], None, |_, args| {
        let is_missing = match &args[1] {
            Value::Str(bytes) => bytes.is_empty(),
            other => other.is_nil(),
        };
        if is_missing {
            return chart_message(&args[0]);
        }
        Ok(args[1].clone())
    }),
    ("fail", &[S], None, |_, args| chart_message(&args[0])),
    ("lookup", &[S, S, S, S], None, lookup),
    ("toYaml", &[A], None, |_, args| {
        Ok(Value::str(to_yaml(&args[0]).unwrap_or_default()))
    }),
    ("mustToYaml", &[A], None, |_, args| {
        to_yaml(&args[0]).map(Value::str)
    }),
    ("toYamlPretty", &[A], None, |_, args| {
        let text = json::to_yaml_as_is(&args[0])
            .map(|value| yaml::emit(&value, yaml::Dialect::Pretty))
            .unwrap_or_default();
        Ok(Value::str(text.strip_suffix('\n').unwrap_or(&text)))
    }),
    ("fromYaml", &[S], None, |_, args| {
        Ok(from_yaml(args[0].bytes()))
    }),
    ("fromYamlArray", &[S], None, |_, args| {
        Ok(from_yaml_array(args[0].bytes()))
    }),
    ("toJson", &[A], None, |_, args| {
        Ok(Value::str(json::encode(&args[0], true).unwrap_or_default()))
    }),
    ("mustToJson", &[A], None, |_, args| {
        json::encode(&args[0], true)
            .map(Value::str)
            .map_err(Error::plain)
    }),
    ("fromJson", &[S], None, |_, args| {
        Ok(match json::decode_map(args[0].bytes()) {
            Ok(map) => map,
            Err(why) => with_error(&why),
        })
    }),
    ("fromJsonArray", &[S], None, |_, args| {
        Ok(match json::decode_list(args[0].bytes()) {
            Ok(list) => list,
            Err(why) => Value::list(vec![Value::str(why)]),
        })
    }),
    ("toToml", &[A], None, |_, args| {
        Ok(Value::str(toml::encode(&args[0]).unwrap_or_else(|why| why)))
    }),
    ("mustToToml", &[A], None, |_, args| {
        toml::encode(&args[0]).map(Value::str).map_err(Error::plain)
    }),
    ("fromToml", &[S], None, |_, args| {
        Ok(toml::decode(&args[0].text()).unwrap_or_else(|why| with_error(&why)))
    }),
];

fn with_error(why: &str) -> Value {
    Value::map([(Rc::from("Error"), Value::str(why))].into())
}

/// The error whose message is the chart's.
fn chart_message(message: &Value) -> Result {
    fail(format!("{MESSAGE_START}{}{MESSAGE_END}", message.text()))
}

fn include(context: &Context<'_>, args: &[Value]) -> Result {
    let name = args[0].text().into_owned();
    let count = *context.env.included.borrow().get(&name).unwrap_or(&0);
    if count > MAX_NESTED {
        return fail(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        ));
    }
    context
        .env
        .included
        .borrow_mut()
        .insert(name.clone(), count + 1);
    let rendered = exec::execute(context.env, context.templates, &name, args[1].clone());
    context.env.included.borrow_mut().insert(name, count);
    rendered.map(Value::str)
}

fn tpl(context: &Context<'_>, args: &[Value]) -> Result {
    let text = args[0].text();
    // What has no actions is what it renders to.
    if !text.contains("{{") {
        return Ok(Value::str(text.replace("<no value>", "")));
    }
    context.env.step(1 + text.len() / 8)?;
    let shown = || crate::quote::quote(text.as_bytes());
    let trees = parse::parse("gotpl", &text, &|name| super::find(name).is_some())
        .map_err(|why| Error::plain(format!("cannot parse template {}: {why}", shown())))?;
    let mut templates: Templates = (**context.templates).clone();
    templates.remove("gotpl");
    add(&mut templates, trees);
    let templates = Rc::new(templates);
    let rendered = exec::execute(context.env, &templates, "gotpl", args[1].clone());
    match rendered {
        Ok(bytes) => Ok(Value::str(without_no_value(bytes))),
        Err(error) if error.limit => Err(error),
        Err(error) => Err(error.within(
            format!("error during tpl function execution for {}: ", shown()),
            false,
        )),
    }
}

/// Adds templates to those there are: one that is empty replaces none.
pub(crate) fn add(templates: &mut Templates, trees: Vec<crate::template::node::Tree>) {
    for tree in trees {
        if tree.is_empty() && templates.contains_key(&tree.name) {
            continue;
        }
        templates.insert(Rc::clone(&tree.name), Rc::new(tree));
    }
}

/// What is printed for no value is left out.
pub(crate) fn without_no_value(bytes: Vec<u8>) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    if super::strings::find(&bytes, NO_VALUE).is_none() {
        return bytes;
    }
    super::strings::split(&bytes, NO_VALUE, -1).concat()
}

fn lookup(context: &Context<'_>, args: &[Value]) -> Result {
    let Some(cluster) = &context.env.lookup else {
        return Ok(Value::map([].into()));
    };
    let text = |index: usize| args[index].text().into_owned();
    match cluster.lookup(&text(0), &text(1), &text(2), &text(3)) {
        Ok(Some(object)) => Ok(Value::from(&object)),
        Ok(None) => Ok(Value::map([].into())),
        Err(why) => fail(why),
    }
}

fn to_yaml(value: &Value) -> std::result::Result<String, Error> {
    let value = json::to_yaml(value).map_err(Error::plain)?;
    let mut text = yaml::emit(&value, yaml::Dialect::Plain);
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

fn read_yaml(bytes: &[u8]) -> std::result::Result<serde_json::Value, String> {
    yaml::read(bytes).and_then(yaml::to_json)
}

fn unmarshal(found: &serde_json::Value, into: &str) -> String {
    let kind = json::kind(found);
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type {into}"
    )
}

fn from_yaml(bytes: &[u8]) -> Value {
    match read_yaml(bytes) {
        Ok(serde_json::Value::Null) => Value::map([].into()),
        Ok(map @ serde_json::Value::Object(_)) => Value::from(&map),
        Ok(other) => with_error(&unmarshal(&other, "map[string]interface {}")),
        Err(why) => with_error(&why),
    }
}

fn from_yaml_array(bytes: &[u8]) -> Value {
    match read_yaml(bytes) {
        Ok(serde_json::Value::Null) => Value::list(Vec::new()),
        Ok(list @ serde_json::Value::Array(_)) => Value::from(&list),
        Ok(other) => Value::list(vec![Value::str(unmarshal(&other, "[]interface {}"))]),
        Err(why) => Value::list(vec![Value::str(why)]),
    }
}
