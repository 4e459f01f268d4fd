//! Strings of a schema: by format, by pattern, or within lengths.

use serde_json::Value;

use super::{Generator, pattern};

/// How often a pattern is tried until the lengths fit as well.
const TRIES: usize = 50;

impl Generator {
    pub(super) fn text(&mut self, schema: &Value) -> String {
        let least = schema["minLength"].as_u64().unwrap_or(0);
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        if let Some(pattern) = schema["pattern"].as_str() {
            let mut text = String::new();
            for _ in 0..TRIES {
                text = pattern::matching(pattern, &mut self.random).unwrap_or_default();
                if (least..=most).contains(&(text.chars().count() as u64)) {
                    break;
                }
            }
            return text;
        }
        if let Some(text) = self.formatted(schema["format"].as_str().unwrap_or_default()) {
            return text;
        }
        let length = if self.smallest {
            return "example"
                .chars()
                .cycle()
                .take(clamp(7, least, most))
                .collect();
        } else {
            self.random
                .between(least, most.min(least.saturating_add(12)))
        };
        (0..length).map(|_| self.random.character()).collect()
    }

    /// A string of a format that the API server checks.
    fn formatted(&mut self, format: &str) -> Option<String> {
        let random = &mut self.random;
        let mut byte = || random.below(256);
        Some(match format {
            "date-time" => {
                let (day, hour, second) = (byte() % 28 + 1, byte() % 24, byte() % 60);
                format!(
                    "2030-{:02}-{day:02}T{hour:02}:00:{second:02}Z",
                    byte() % 12 + 1
                )
            }
            "date" => format!("2030-{:02}-{:02}", byte() % 12 + 1, byte() % 28 + 1),
            "duration" => format!("{}h{}m", byte(), byte() % 60),
            "byte" => ["", "AA==", "d2luZGxhc3M="]
                [usize::from(byte() > 80) + usize::from(byte() > 160)]
            .to_owned(),
            "ipv4" | "ip" => format!("10.{}.{}.{}", byte(), byte(), byte()),
            "ipv6" => format!("fd00::{:x}:{:x}", byte(), byte()),
            "cidr" => format!("10.{}.{}.0/24", byte(), byte()),
            "mac" => format!("02:00:00:00:{:02x}:{:02x}", byte(), byte()),
            "email" => format!("a{}@example.com", byte()),
            "hostname" => format!("host-{}.example.com", byte()),
            "uri" => format!("https://example.com/{}", byte()),
            "uuid" | "uuid4" => format!(
                "{:02x}{:02x}{:02x}{:02x}-0000-4000-8000-00000000{:02x}{:02x}",
                byte(),
                byte(),
                byte(),
                byte(),
                byte(),
                byte()
            ),
            _ => return None,
        })
    }
}

fn clamp(wanted: u64, least: u64, most: u64) -> usize {
    usize::try_from(wanted.min(most).max(least)).unwrap_or(usize::MAX)
}
