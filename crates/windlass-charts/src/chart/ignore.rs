//! `.helmignore`.

use super::pattern::Pattern;

/// What a chart leaves out of itself.
pub(super) struct Rules(Vec<Rule>);

struct Rule {
    /// Nothing if it is no pattern without the slash at its end, and then it matches nothing.
    pattern: Option<Pattern>,
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
            if Pattern::parse(line).is_none() {
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
                pattern: Pattern::parse(rooted.unwrap_or(rest)),
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
            let is_match = (rule.pattern.as_ref()).is_some_and(|pattern| pattern.matches(name));
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
