//! What the comments of a `values.yaml` say of its values.

/// How long a description may be.
const MAX_LENGTH: usize = 600;

/// The values that have a comment above them, by their paths. Only maps in block style are
/// followed: what is in lists or in braces has no description of its own.
pub(super) fn comments(text: &[u8]) -> Vec<(Vec<String>, String)> {
    let text = String::from_utf8_lossy(text);
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    // The keys that the current line is in, and how far each is from the margin.
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if let Some(from) = block {
            if trimmed.is_empty() || indent > from {
                continue;
            }
            block = None;
        }
        if trimmed.is_empty() {
            above.clear();
            continue;
        }
        if trimmed.starts_with('#') {
            let comment = trimmed.trim_start_matches('#').trim();
            match parameter(comment) {
                Some((path, text)) => found.push((path, text.to_owned())),
                None => above.push(comment),
            }
            continue;
        }
        let comment = std::mem::take(&mut above);
        let Some((key, rest)) = key_of(trimmed) else {
            continue;
        };
        path.retain(|(other, _)| *other < indent);
        path.push((indent, key));
        if rest.starts_with(['|', '>']) {
            block = Some(indent);
        }
        if let Some(text) = description(&comment) {
            let path = path.iter().map(|(_, key)| key.clone()).collect();
            found.push((path, text));
        }
    }
    found
}

/// The key at the start of a line, and what follows it.
fn key_of(line: &str) -> Option<(String, &str)> {
    if line.starts_with(['-', '{', '[', '}', ']', '&', '*']) {
        return None;
    }
    let (key, rest) = line.split_once(':')?;
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let key = key.trim().trim_matches(['"', '\'']);
    Some((key.to_owned(), rest.trim()))
}

/// `@param path text`, as some charts describe their values.
fn parameter(comment: &str) -> Option<(Vec<String>, &str)> {
    let (path, text) = comment.strip_prefix("@param ")?.trim().split_once(' ')?;
    let text = text.trim();
    // What stands in brackets is for the program that reads it.
    let text = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.1.trim(),
        None => text,
    };
    if path.contains('[') || text.is_empty() {
        return None;
    }
    Some((path.split('.').map(str::to_owned).collect(), text))
}

/// The description that a comment is: from `--` on, if it has that.
fn description(lines: &[&str]) -> Option<String> {
    let from = lines
        .iter()
        .rposition(|line| line.starts_with("-- "))
        .unwrap_or(0);
    let lines = lines.get(from..)?;
    let is_text =
        |line: &&&str| !line.is_empty() && !line.starts_with('@') && !line.starts_with("--- ");
    let text: Vec<&str> = lines
        .iter()
        .filter(is_text)
        .map(|line| line.strip_prefix("-- ").unwrap_or(line))
        .collect();
    // A value that is commented out describes nothing.
    if text
        .iter()
        .any(|line| line.ends_with(':') || line.starts_with("- "))
    {
        return None;
    }
    let text = text.join(" ");
    (!text.is_empty() && text.len() <= MAX_LENGTH).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_belong_to_the_value_below_them() {
        let text = "\
# A license.

## @param image.tag [string] The tag
# -- Replicas
# of the set
replicas: 1
text: |
  # no comment
  a: b
image:
  # The name
  name: x # behind
  # tag:
  tag: y
list:
  # first
  - a: 1
";
        let found: Vec<String> = comments(text.as_bytes())
            .into_iter()
            .map(|(path, text)| format!("{}={text}", path.join(".")))
            .collect();
        assert_eq!(
            found,
            [
                "image.tag=The tag",
                "replicas=Replicas of the set",
                "image.name=The name"
            ]
        );
    }
}
