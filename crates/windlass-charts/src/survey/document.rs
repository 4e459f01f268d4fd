//! Lines of a document to its API version and kind.

use std::rc::Rc;

use super::text::{CLOSE, OPEN, said};
use super::{Need, Purpose, Said};

/// A line of which the beginning says that nothing is to be learnt from it.
const OTHER: &str = "\u{3}";

/// A text and where it was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    text: String,
    place: Place,
}

/// Where something stands, and under which conditions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) source: Rc<str>,
    pub(super) line: usize,
    pub(super) when: Vec<Rc<str>>,
}

/// How far one way through a template has come in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Document {
    /// How far its keys are from the margin.
    indent: Option<usize>,
    api_version: Option<Found>,
    kind: Option<Found>,
    /// An expression that is a line of its own and may be a whole object.
    whole: Option<Found>,
    line: String,
}

impl Document {
    /// Goes on with a text that begins at a place.
    pub(super) fn feed(&mut self, text: &str, mut place: Place, needs: &mut Vec<Need>) {
        for part in text.split_inclusive('\n') {
            self.push(part.trim_end_matches(['\n', '\r']));
            if part.ends_with('\n') {
                self.end_line(&place, needs);
                place.line += 1;
            }
        }
    }

    /// What follows on this line, or is further in, does not matter.
    pub(super) fn skip(&mut self) {
        OTHER.clone_into(&mut self.line);
    }

    fn push(&mut self, part: &str) {
        if self.line == OTHER {
            return;
        }
        self.line.push_str(part);
        let text = self.line.trim_start();
        let may_be = |key: &str| key.starts_with(text) || text.starts_with(key);
        let is_open = text.is_empty()
            || text.starts_with([OPEN, '#'])
            || ["---", "apiVersion:", "kind:"]
                .iter()
                .any(|key| may_be(key));
        if !is_open {
            if self.indent.is_none() {
                self.indent = Some(self.line.len() - text.len());
            }
            self.skip();
        }
    }

    fn end_line(&mut self, place: &Place, needs: &mut Vec<Need>) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || line == OTHER {
            return;
        }
        if let Some(rest) = text.strip_prefix("---")
            && line.starts_with("---")
        {
            self.end(needs);
            rest.trim_start().clone_into(&mut self.line);
            return;
        }
        let indent = line.len() - line.trim_start().len();
        let found = |text: &str| Found {
            text: unquoted(text),
            place: place.clone(),
        };
        if text.starts_with(OPEN) && text.ends_with(CLOSE) {
            if indent == 0 {
                self.whole.get_or_insert(found(text));
            }
            return;
        }
        if *self.indent.get_or_insert(indent) != indent {
            return;
        }
        let value = |key: &str| text.strip_prefix(key).map(str::trim);
        if let Some(value) = value("apiVersion:").filter(|value| !value.is_empty()) {
            if self.api_version.is_some() {
                self.end(needs);
                self.indent = Some(indent);
            }
            self.api_version = Some(found(value));
        } else if let Some(value) = value("kind:").filter(|value| !value.is_empty()) {
            if self.kind.is_some() {
                self.end(needs);
                self.indent = Some(indent);
            }
            self.kind = Some(found(value));
        }
    }

    /// Ends the template.
    pub(super) fn finish(mut self, place: &Place, needs: &mut Vec<Need>) {
        self.end_line(place, needs);
        self.end(needs);
    }

    /// Ends the document.
    fn end(&mut self, needs: &mut Vec<Need>) {
        let document = std::mem::take(self);
        let (api_version, kind, place) = match (document.api_version, document.kind) {
            (Some(api_version), Some(kind)) => {
                (said(&api_version.text), said(&kind.text), kind.place)
            }
            (None, Some(kind)) => (
                Said::Computed("no apiVersion".to_owned()),
                said(&kind.text),
                kind.place,
            ),
            (Some(_), None) => return,
            (None, None) => match document.whole {
                Some(whole) => (said(&whole.text), said(&whole.text), whole.place),
                None => return,
            },
        };
        needs.push(Need {
            purpose: Purpose::Make,
            api_version,
            kind,
            source: place.source.to_string(),
            line: place.line,
            when: place.when.iter().map(ToString::to_string).collect(),
        });
    }
}

/// A scalar without its quotes and without a comment behind it.
fn unquoted(text: &str) -> String {
    let text = text.split(" #").next().unwrap_or_default().trim();
    text.trim_matches(['"', '\'']).to_owned()
}
