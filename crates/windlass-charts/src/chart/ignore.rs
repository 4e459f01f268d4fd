//! `.helmignore`.

/// What a chart leaves out of itself.
pub(super) struct Rules(Vec<Rule>);

struct Rule {
    pattern: Vec<char>,
    negated: bool,
    folders_only: bool,
    /// Whether the whole path is meant, and not its last part only.
    whole: bool,
}

impl Rules {
    /// Reads rules, and adds that hidden files are no templates.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.lines().chain(std::iter::once("templates/.?*")) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err("double-star (**) syntax is not supported".to_owned());
            }
            let all: Vec<char> = line.chars().collect();
            if matches(&all, &['a', 'b', 'c']).is_none() {
                return Err("syntax error in pattern".to_owned());
            }
            let (negated, rest) = match line.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            let (folders_only, rest) = match rest.strip_suffix('/') {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let rooted = rest.strip_prefix('/');
            rules.push(Rule {
                pattern: rooted.unwrap_or(rest).chars().collect(),
                negated,
                folders_only,
                whole: rooted.is_some() || rest.contains('/'),
            });
        }
        Ok(Self(rules))
    }

    pub(super) fn ignores(&self, path: &str, is_folder: bool) -> bool {
        for rule in &self.0 {
            let name = if rule.whole {
                path
            } else {
                path.rsplit('/').next().unwrap_or(path)
            };
            let name: Vec<char> = name.chars().collect();
            let is_match = matches(&rule.pattern, &name) == Some(true);
            if rule.negated {
                if (rule.folders_only && !is_folder) || !is_match {
                    return true;
                }
            } else if is_match && (is_folder || !rule.folders_only) {
                return true;
            }
        }
        false
    }
}

/// `filepath.Match`: whether a name matches a pattern, or nothing if it is no pattern.
fn matches(pattern: &[char], name: &[char]) -> Option<bool> {
    let Some((first, rest)) = pattern.split_first() else {
        return Some(name.is_empty());
    };
    match first {
        '*' => {
            let rest = &rest[rest.iter().take_while(|c| **c == '*').count()..];
            let mut found = false;
            for skipped in 0..=name.len() {
                if skipped > 0 && name[skipped - 1] == '/' {
                    break;
                }
                if matches(rest, &name[skipped..])? {
                    found = true;
                    break;
                }
            }
            Some(found)
        }
        '[' => {
            let (is_in, rest) = class(rest, name.first().copied())?;
            match name.split_first() {
                Some((c, others)) if is_in && *c != '/' => matches(rest, others),
                _ => matches(rest, &[]).map(|_| false),
            }
        }
        _ => {
            let (wanted, rest) = if *first == '\\' {
                let (escaped, rest) = rest.split_first()?;
                (Some(escaped), rest)
            } else {
                (Some(first).filter(|c| **c != '?'), rest)
            };
            match name.split_first() {
                Some((c, others)) if wanted.map_or(*c != '/', |wanted| wanted == c) => {
                    matches(rest, others)
                }
                _ => matches(rest, &[]).map(|_| false),
            }
        }
    }
}

/// Whether a character is in a class, and what follows it.
fn class(pattern: &[char], c: Option<char>) -> Option<(bool, &[char])> {
    let (negated, mut rest) = match pattern.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    let mut count = 0;
    loop {
        if rest.first() == Some(&']') && count > 0 {
            return Some((found != negated, &rest[1..]));
        }
        let (low, after) = member(rest)?;
        let (high, after) = match after.split_first() {
            Some(('-', after)) => member(after)?,
            _ => (low, after),
        };
        found |= c.is_some_and(|c| low <= c && c <= high);
        rest = after;
        count += 1;
    }
}

fn member(pattern: &[char]) -> Option<(char, &[char])> {
    let (first, rest) = pattern.split_first()?;
    let (c, rest) = match first {
        '-' | ']' => return None,
        '\\' => rest.split_first()?,
        _ => (first, rest),
    };
    (!rest.is_empty()).then_some((*c, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_ignore_what_they_name() {
        let rules = Rules::parse("# comment\n*.bak\n/top\nfolder/\na/*.txt\n[x-z].md\n").unwrap();
        for (path, is_folder, ignored) in [
            ("a.bak", false, true),
            ("deep/a.bak", false, true),
            ("top", false, true),
            ("deep/top", false, false),
            ("folder", true, true),
            ("folder", false, false),
            ("a/b.txt", false, true),
            ("a/b/c.txt", false, false),
            ("y.md", false, true),
            ("templates/.hidden", false, true),
            ("templates/shown", false, false),
        ] {
            assert_eq!(rules.ignores(path, is_folder), ignored, "{path}");
        }
        assert!(Rules::parse("a**b").is_err());
        assert!(Rules::parse("[").is_err());
    }
}
