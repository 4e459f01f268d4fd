//! `snakecase`, `kebabcase` and `camelcase`, word by word as the original finds words.

#[derive(Clone, Copy, PartialEq)]
enum Word {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
}

fn is_letter(c: char) -> bool {
    c.is_uppercase() || c.is_lowercase()
}

/// The kind of the next word, the word, and what follows.
fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else {
        return (Word::None, "", "");
    };
    let run = |from: usize, is_in: &dyn Fn(char) -> bool| {
        text[from..]
            .find(|c| !is_in(c))
            .map_or(text.len(), |length| from + length)
    };
    let width = first.len_utf8();
    let (kind, end) = if is_connector(first) {
        (Word::Connector, run(width, &is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, run(width, &is_punctuation))
    } else if first.is_uppercase() {
        let upper = run(width, &|c| c.is_uppercase());
        let end = match text[upper..].chars().next() {
            // Of several capitals the last one begins the next word.
            Some(next) if upper > width && is_letter(next) => {
                upper - text[..upper].chars().next_back().map_or(0, char::len_utf8)
            }
            Some(next) if upper == width && is_letter(next) => {
                run(width, &|c| is_letter(c) && !c.is_uppercase())
            }
            _ => upper,
        };
        (Word::Upper, end)
    } else if is_letter(first) {
        (
            Word::Alphabet,
            run(width, &|c| is_letter(c) && !c.is_uppercase()),
        )
    } else if first.is_numeric() {
        (Word::Number, run(width, &char::is_numeric))
    } else {
        let is_other =
            |c| !(is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c));
        (Word::Other, run(width, &is_other))
    };
    (kind, &text[..end], &text[end..])
}

fn lower(out: &mut String, kind: Word, word: &str, connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        out.push_str(word);
        return;
    }
    for c in word.chars() {
        if is_connector(c) {
            out.push(connector);
        } else {
            out.extend(c.to_lowercase());
        }
    }
}

/// Words in small letters with something between them.
pub(super) fn joined(text: &str, connector: char) -> String {
    let mut out = String::new();
    let (mut kind, mut word, mut rest) = next_word(text);
    let is_break = |kind| matches!(kind, Word::Connector | Word::Punctuation);
    while !rest.is_empty() {
        if kind != Word::Connector {
            lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && !is_break(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !is_break(kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind != Word::Alphabet {
                    lower(&mut out, Word::Number, number, connector);
                    if !is_break(kind) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                lower(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Alphabet | Word::Number) {
                    lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if kind != Word::None && !is_break(kind) {
                    out.push(connector);
                }
            }
        }
    }
    lower(&mut out, kind, word, connector);
    out
}

/// Words with a capital at the front and nothing between them.
pub(super) fn camel(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    let mut current = loop {
        let Some(c) = chars.next() else {
            return out;
        };
        if !is_connector(c) {
            break c;
        }
        out.push(c);
    };
    let upper = |c: char| c.to_uppercase().next().unwrap_or(c);
    let mut first_upper = current.is_uppercase();
    current = upper(current);
    for next in chars {
        let before = current;
        current = next;
        if is_connector(current) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            first_upper = current.is_uppercase();
            current = upper(current);
        } else {
            if first_upper {
                if current.is_uppercase() {
                    current = current.to_lowercase().next().unwrap_or(current);
                } else {
                    first_upper = false;
                }
            }
            out.push(before);
        }
    }
    out.push(current);
    out
}
