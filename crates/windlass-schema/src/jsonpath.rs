//! The part of `JSONPath` that printer columns use: fields, quoted fields, indexes, `[*]` and `[?(@.a=="b")]`.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// From the end, if negative.
    Index(i64),
    /// From one place to another, each from the end if negative.
    Slice(Option<i64>, Option<i64>),
    All,
    Where {
        path: Vec<String>,
        equals: Value,
    },
}

/// A path that picks cells out of an object; one that could not be read picks nothing.
#[derive(Clone, Debug, Default)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Reads a path; what cannot be read finds nothing.
    pub fn parse(text: &str) -> Self {
        Self(parse(text.trim().trim_start_matches('{').trim_end_matches('}')).unwrap_or_default())
    }

    /// The first value the path leads to.
    pub fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        if self.0.is_empty() {
            return None;
        }
        follow(&self.0, object)
    }
}

fn follow<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match step {
        Step::Field(name) => follow(rest, value.get(name)?),
        Step::Index(index) => {
            let items = value.as_array()?;
            follow(rest, items.get(place(*index, items.len())?)?)
        }
        Step::Slice(from, to) => {
            let items = value.as_array()?;
            let from = from.map_or(Some(0), |from| place(from, items.len()))?;
            let to = to.map_or(Some(items.len()), |to| place(to, items.len()))?;
            let items = items.get(from..to.min(items.len()))?;
            items.iter().find_map(|item| follow(rest, item))
        }
        Step::All => value.as_array()?.iter().find_map(|item| follow(rest, item)),
        Step::Where { path, equals } => value
            .as_array()?
            .iter()
            .filter(|item| {
                path.iter().try_fold(*item, |value, part| value.get(part)) == Some(equals)
            })
            .find_map(|item| follow(rest, item)),
    }
}

/// Where in a list of that length something is.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok()
}

fn parse(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    text = text.strip_prefix('$').unwrap_or(text);
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix('.') {
            // A backslash keeps a dot inside a name.
            let mut name = String::new();
            let mut chars = rest.char_indices();
            let mut end = rest.len();
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => name.push(chars.next()?.1),
                    '.' | '[' => {
                        end = at;
                        break;
                    }
                    c => name.push(c),
                }
            }
            if !name.is_empty() {
                steps.push(Step::Field(name));
            }
            text = &rest[end..];
        } else {
            let rest = text.strip_prefix('[')?;
            let end = rest.find(']')?;
            steps.push(bracket(&rest[..end])?);
            text = &rest[end + 1..];
        }
    }
    Some(steps)
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    if let Some((from, to)) = inside.split_once(':') {
        let bound = |text: &str| match text.trim() {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        if let (Some(from), Some(to)) = (bound(from), bound(to)) {
            return Some(Step::Slice(from, to));
        }
    }
    if let Some(condition) = inside
        .strip_prefix("?(@.")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let (path, value) = condition.split_once("==")?;
        let value = value.trim();
        let equals = match value.strip_prefix(['"', '\'']) {
            Some(text) => Value::from(text.trim_end_matches(['"', '\''])),
            None => serde_json::from_str(value).ok()?,
        };
        return Some(Step::Where {
            path: path.trim().split('.').map(str::to_owned).collect(),
            equals,
        });
    }
    Some(Step::Field(
        inside
            .strip_prefix(['"', '\''])?
            .trim_end_matches(['"', '\''])
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn columns_find_their_cells() {
        let object = json!({"spec": {"size": 3, "a.b": "x", "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let find = |path: &str| JsonPath::parse(path).find(&object).cloned();
        assert_eq!(find(".spec.size"), Some(json!(3)));
        assert_eq!(find(".spec.list[1].n"), Some(json!(2)));
        assert_eq!(find(".spec['a.b']"), Some(json!("x")));
        assert_eq!(find(r".spec.a\.b"), Some(json!("x")));
        assert_eq!(
            find(".status.conditions[?(@.type==\"Ready\")].status"),
            Some(json!("True"))
        );
        assert_eq!(
            find(".status.conditions[?(@.type==\"Other\")].status"),
            None
        );
        assert_eq!(find("nonsense["), None);
    }

    proptest! {
        #[test]
        fn no_path_panics(text in ".{0,40}") {
            let _ = JsonPath::parse(&text).find(&json!({"a": [1]}));
        }
    }
}
