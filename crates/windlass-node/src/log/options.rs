//! What a reader of logs asks for, as the query of `/containerLogs` has it.

use jiff::Timestamp;

/// Which part of a log, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// The run before the present one.
    pub previous: bool,
    /// Only the last so many lines.
    pub tail_lines: Option<u64>,
    /// No more than so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only lines written in the last so many seconds.
    pub since_seconds: Option<u64>,
    /// Only lines written from then on.
    pub since_time: Option<Timestamp>,
    /// With the time before each line.
    pub timestamps: bool,
}

/// A query that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid value \"{value}\" of {name}")]
pub struct OptionError {
    name: String,
    value: String,
}

impl LogOptions {
    /// Reads the query of a request; what it does not know it leaves alone.
    pub fn from_query(query: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let invalid = || OptionError {
                name: name.to_owned(),
                value: value.to_owned(),
            };
            let number = || value.parse().map(Some).map_err(|_| invalid());
            let flag = || value.parse().map_err(|_| invalid());
            match name {
                "follow" => options.follow = flag()?,
                "previous" => options.previous = flag()?,
                "timestamps" => options.timestamps = flag()?,
                "tailLines" => options.tail_lines = number()?,
                "limitBytes" => options.limit_bytes = number()?,
                "sinceSeconds" => options.since_seconds = number()?,
                "sinceTime" => {
                    let plain = value
                        .replace("%3A", ":")
                        .replace("%3a", ":")
                        .replace("%2B", "+");
                    options.since_time = Some(plain.parse().map_err(|_| invalid())?);
                }
                _ => {}
            }
        }
        Ok(options)
    }

    /// The time before which lines are left out.
    pub(super) fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let ago = self.since_seconds.map(|seconds| {
            now.checked_sub(std::time::Duration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        });
        ago.max(self.since_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_as_the_api_server_sends_it() {
        let query = "follow=true&tailLines=5&sinceTime=2026-11-15T16%3A44%3A43Z&timestamps=true";
        let options = LogOptions::from_query(query).expect("options");
        let since_time = Some("2026-11-15T16:44:43Z".parse().expect("a time"));
        let expected = LogOptions {
            follow: true,
            tail_lines: Some(5),
            since_time,
            timestamps: true,
            ..LogOptions::default()
        };
        assert_eq!(options, expected);
        assert_eq!(LogOptions::from_query(""), Ok(LogOptions::default()));
    }

    #[test]
    fn nonsense_is_named() {
        let error = LogOptions::from_query("tailLines=-3").expect_err("negative");
        assert_eq!(error.to_string(), "invalid value \"-3\" of tailLines");
    }
}
