//! Indexes of Jobs, written as numbers and ranges: `0-2,5`.

/// Why a text names no indexes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IndexesError {
    #[error("cannot convert string to integer for index: \"{0}\"")]
    NoNumber(String),
    #[error("too large index: \"{0}\"")]
    TooLarge(String),
    #[error("non-increasing order, previous: {previous}, current: {current}")]
    Order { previous: i64, current: i64 },
    #[error(
        "the fragment \"{0}\" violates the requirement that an index interval can have at most two parts separated by '-'"
    )]
    Interval(String),
}

/// How many indexes a text names.
pub(crate) fn count(text: &str, completions: i64) -> Result<i64, IndexesError> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (from, to) = range(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(IndexesError::Order {
                previous: last,
                current: from,
            });
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

fn range(interval: &str, completions: i64) -> Result<(i64, i64), IndexesError> {
    let number = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| IndexesError::NoNumber(text.to_owned()))?;
        if number >= completions {
            return Err(IndexesError::TooLarge(text.to_owned()));
        }
        Ok(number)
    };
    let parts: Vec<&str> = interval.split('-').collect();
    match parts.as_slice() {
        [one] => number(one).map(|one| (one, one)),
        [from, to] => {
            let (from, to) = (number(from)?, number(to)?);
            if from >= to {
                return Err(IndexesError::Order {
                    previous: from,
                    current: to,
                });
            }
            Ok((from, to))
        }
        _ => Err(IndexesError::Interval(interval.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn numbers_and_ranges_are_counted() {
        assert_eq!(count("", 5), Ok(0));
        assert_eq!(count("0-2,4", 5), Ok(4));
        for wrong in ["5", "1-0", "2,1", "x", "0-1-2", "1,1"] {
            assert!(count(wrong, 5).is_err(), "{wrong}");
        }
    }
}
