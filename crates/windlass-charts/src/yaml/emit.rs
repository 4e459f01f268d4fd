//! Values to text.
//!
//! The writer keeps track of the column, because long plain and quoted text is folded at spaces
//! past the eightieth (in the dialect of `toYaml`), and of whether it stands at the beginning of a
//! line, because a collection within a sequence begins on the line of its dash.

use std::cmp::Ordering;

use super::read::Yaml;
use super::resolve::{Scalar, Version, is_base_60, old_bool, resolve};
use super::scan::is_allowed;
use crate::number;

/// How many columns are filled before text is folded.
const WIDTH: usize = 80;
/// How long a key may be that is written without a question mark, in bytes.
const MAX_SIMPLE_KEY: usize = 128;

/// One of the two writers that Helm has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    /// That of `toYaml`: sequences stand as deep as their key, and long lines are folded.
    Plain,
    /// That of `toYamlPretty`: sequences are indented.
    Pretty,
}

/// Writes a document, with a line feed at its end.
pub(crate) fn emit(value: &Yaml, dialect: Dialect) -> String {
    let mut emitter = Emitter {
        out: String::new(),
        column: 0,
        indent: -1,
        whitespace: true,
        indention: true,
        dialect,
    };
    emitter.node(value, Context::default());
    emitter.write_indent();
    emitter.out
}

/// Where a node stands.
#[derive(Clone, Copy, Default)]
struct Context {
    mapping: bool,
    key: bool,
    /// Whether it is an item of a sequence.
    item: bool,
}

struct Emitter {
    out: String,
    column: usize,
    indent: isize,
    whitespace: bool,
    /// Whether only indentation was written on this line.
    indention: bool,
    dialect: Dialect,
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

impl Emitter {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// Writes a line break that is part of a text: a line feed, or a separator of Unicode's.
    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
        }
    }

    fn write_indent(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, need_space: bool, is_space: bool, is_indention: bool) {
        if need_space && !self.whitespace {
            self.put(' ');
        }
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
    }

    /// The indentation of what is within, of which `indentless` says that it is as deep.
    fn deeper(&self, flow: bool, indentless: bool, in_item: bool) -> isize {
        if self.indent < 0 {
            return if flow { 2 } else { 0 };
        }
        if indentless {
            return self.indent;
        }
        match self.dialect {
            Dialect::Plain => self.indent + 2,
            Dialect::Pretty if in_item => self.indent + 2,
            Dialect::Pretty => self.indent - self.indent % 2 + 2,
        }
    }

    fn node(&mut self, value: &Yaml, context: Context) {
        match value {
            Yaml::Null => self.plain("null"),
            Yaml::Bool(value) => self.plain(if *value { "true" } else { "false" }),
            Yaml::Int(value) => self.plain(&value.to_string()),
            Yaml::Uint(value) => self.plain(&value.to_string()),
            Yaml::Float(value) => self.plain(&float(*value)),
            Yaml::Str(text) => self.string(text, context),
            Yaml::List(items) if items.is_empty() => {
                self.indicator("[", true, true, false);
                self.indicator("]", false, false, false);
            }
            Yaml::Map(entries) if entries.is_empty() => {
                self.indicator("{", true, true, false);
                self.indicator("}", false, false, false);
            }
            Yaml::List(items) => self.sequence(items, context),
            Yaml::Map(entries) => {
                let mut sorted: Vec<(&String, &Yaml)> = entries.iter().collect();
                sorted.sort_by(|a, b| compare_keys(a.0, b.0, self.dialect));
                self.mapping(&sorted, context);
            }
        }
    }

    fn plain(&mut self, text: &str) {
        self.write_plain(text, false);
    }

    fn sequence(&mut self, items: &[Yaml], context: Context) {
        let outer = self.indent;
        let indentless = self.dialect == Dialect::Plain && context.mapping && !self.indention;
        self.indent = self.deeper(false, indentless, context.item);
        for item in items {
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(
                item,
                Context {
                    item: true,
                    ..Context::default()
                },
            );
        }
        self.indent = outer;
    }

    fn mapping(&mut self, entries: &[(&String, &Yaml)], context: Context) {
        let outer = self.indent;
        self.indent = self.deeper(false, false, context.item);
        for (key, value) in entries {
            self.write_indent();
            let within = Context {
                mapping: true,
                ..Context::default()
            };
            let is_simple = key.len() <= MAX_SIMPLE_KEY && !key.contains(is_break);
            if is_simple {
                self.string(
                    key,
                    Context {
                        key: true,
                        ..within
                    },
                );
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.string(key, within);
                self.write_indent();
                self.indicator(":", true, false, true);
            }
            self.node(value, within);
        }
        self.indent = outer;
    }

    fn string(&mut self, text: &str, context: Context) {
        let analysis = Analysis::of(text, self.dialect);
        let version = match self.dialect {
            Dialect::Plain => Version::Old,
            Dialect::Pretty => Version::New,
        };
        let means_itself = resolve(text, version) == Scalar::Str
            && !is_base_60(text)
            && !(version == Version::New && old_bool(text).is_some());
        let mut style = if text.contains('\n') {
            Style::Literal
        } else if means_itself {
            Style::Plain
        } else {
            Style::Double
        };
        if context.key && analysis.multiline {
            style = Style::Double;
        }
        if style == Style::Plain && (!analysis.plain_allowed || (text.is_empty() && context.key)) {
            style = Style::Single;
        }
        if style == Style::Single && !analysis.single_allowed {
            style = Style::Double;
        }
        if style == Style::Literal && (!analysis.block_allowed || context.key) {
            style = Style::Double;
        }
        let outer = self.indent;
        self.indent = self.deeper(true, false, context.item);
        let fold = !context.key && self.dialect == Dialect::Plain;
        match style {
            Style::Plain => self.write_plain(text, fold),
            Style::Single => self.write_single(text, fold),
            Style::Double => self.write_double(text, fold),
            Style::Literal => self.write_literal(text),
        }
        self.indent = outer;
    }

    /// Whether the space that comes next is where a line is folded.
    fn folds(&self, fold: bool, spaces: bool) -> bool {
        fold && !spaces && self.column > WIDTH
    }

    fn write_plain(&mut self, text: &str, fold: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                if self.folds(fold, spaces) && chars.peek() != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single(&mut self, text: &str, fold: bool) {
        self.indicator("'", true, false, false);
        let (mut spaces, mut breaks) = (false, false);
        let last = text.chars().count().saturating_sub(1);
        let mut chars = text.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            if c == ' ' {
                let followed = chars.peek().is_some_and(|(_, next)| *next == ' ');
                if self.folds(fold, spaces) && index > 0 && index < last && !followed {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put(c);
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_double(&mut self, text: &str, fold: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let last = text.chars().count().saturating_sub(1);
        let mut chars = text.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            if !is_printable(c) || c == '\u{feff}' || is_break(c) || c == '"' || c == '\\' {
                self.escaped(c);
                spaces = false;
            } else if c == ' ' {
                if self.folds(fold, spaces) && index > 0 && index < last {
                    self.write_indent();
                    if chars.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escaped(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let hex = match code {
                    0..=0xff => format!("x{code:02X}"),
                    0x100..=0xffff => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                for c in hex.chars() {
                    self.put(c);
                }
                return;
            }
        };
        self.put(short);
    }

    fn write_literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with([' ', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.indicator("2", false, false, false);
        }
        let mut from_end = text.chars().rev();
        let chomping = match (from_end.next(), from_end.next()) {
            (None, _) => "-",
            (Some(last), _) if !is_break(last) => "-",
            (Some(_), None) => "+",
            (Some(_), Some(before)) if is_break(before) => "+",
            _ => "",
        };
        if !chomping.is_empty() {
            self.indicator(chomping, false, false, false);
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.literal_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    /// The indentation of a line of a literal, which has begun.
    fn literal_indent(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        ".nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        number::format_g(value)
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    c == '\n'
        || (is_allowed(c)
            && u32::from(c) <= 0xffff
            && !matches!(c, '\t' | '\r' | '\u{85}' | '\u{feff}'))
}

/// In which styles a text can be written.
struct Analysis {
    multiline: bool,
    plain_allowed: bool,
    single_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    fn of(text: &str, dialect: Dialect) -> Self {
        let Some(first) = text.chars().next() else {
            return Self {
                multiline: false,
                plain_allowed: true,
                single_allowed: true,
                block_allowed: false,
            };
        };
        let last = text.chars().next_back().unwrap_or(first);
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut tab, mut multiline) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut was_space, mut was_break) = (false, false);
        let mut after_blank = true;
        let mut chars = text.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            let before_blank = chars
                .peek()
                .is_none_or(|(_, next)| matches!(next, ' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"'
                | '%' | '@' | '`'
                    if index == 0 =>
                {
                    true
                }
                '?' | '-' if index == 0 => before_blank,
                ':' => before_blank,
                '#' => after_blank,
                _ => false,
            };
            if c == '\t' && dialect == Dialect::Pretty {
                tab = true;
            } else {
                special |= !is_printable(c);
            }
            if c == ' ' {
                break_space |= was_break;
                was_space = true;
                was_break = false;
            } else if is_break(c) {
                multiline = true;
                space_break |= was_space;
                was_space = false;
                was_break = true;
            } else {
                was_space = false;
                was_break = false;
            }
            after_blank = matches!(c, ' ' | '\t') || is_break(c);
        }
        let edge = |c: char| c == ' ' || is_break(c);
        Self {
            multiline,
            plain_allowed: !(edge(first)
                || edge(last)
                || break_space
                || space_break
                || special
                || tab
                || multiline
                || indicators),
            single_allowed: !(break_space || space_break || special || tab),
            block_allowed: !(last == ' ' || space_break || special),
        }
    }
}

/// The order of keys: letters after everything else, and numbers within by their value.
fn compare_keys(a: &str, b: &str, dialect: Dialect) -> Ordering {
    if less(a, b, dialect) {
        Ordering::Less
    } else if less(b, a, dialect) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

fn less(a: &str, b: &str, dialect: Dialect) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut after_digit = false;
    for index in 0..a.len().min(b.len()) {
        let (ac, bc) = (a[index], b[index]);
        if ac == bc {
            after_digit = ac.is_numeric();
            continue;
        }
        match (ac.is_alphabetic(), bc.is_alphabetic()) {
            (true, true) => return ac < bc,
            (false, false) => {}
            (a_is_letter, _) if after_digit && dialect == Dialect::Pretty => return a_is_letter,
            (_, b_is_letter) => return b_is_letter,
        }
        // A zero behind other digits is a digit like others; at the front it adds nothing.
        let seed = i64::from(
            (ac == '0' || bc == '0')
                && a[..index]
                    .iter()
                    .rev()
                    .take_while(|c| c.is_numeric())
                    .any(|c| *c != '0'),
        );
        let (a_end, a_number) = number_from(&a, index, seed);
        let (b_end, b_number) = number_from(&b, index, seed);
        if a_number != b_number {
            return a_number < b_number;
        }
        if a_end != b_end {
            return a_end < b_end;
        }
        return ac < bc;
    }
    a.len() < b.len()
}

fn number_from(text: &[char], from: usize, seed: i64) -> (usize, i64) {
    let mut number = seed;
    let mut end = from;
    while let Some(digit) = text.get(end).filter(|c| c.is_numeric()) {
        let digit = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        number = number.wrapping_mul(10).wrapping_add(digit);
        end += 1;
    }
    (end, number)
}
