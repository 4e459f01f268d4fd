//! Quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! A quantity is a decimal number with a suffix. It is kept in its canonical form: the largest
//! suffix that leaves a whole number, in the family of suffixes it was written with. Nothing is
//! finer than a billionth; what is, is rounded away from zero.

use std::fmt;
use std::ops::AddAssign;

/// How Kubernetes says that a text is no quantity.
pub const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const DECIMAL: &[(&str, i32)] = &[
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: &[&str] = &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i128 = 1_000_000_000;

/// The family of suffixes a quantity is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// An amount of something.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        nanos: 0,
        form: Form::Decimal,
    };

    /// One of something.
    pub const ONE: Self = Self {
        nanos: NANO,
        form: Form::Decimal,
    };

    /// So many of something.
    pub fn whole(count: usize) -> Self {
        let nanos = i128::try_from(count).unwrap_or(i128::MAX);
        Self {
            nanos: nanos.saturating_mul(NANO),
            form: Form::Decimal,
        }
    }

    /// The amount as a whole number, rounded away from zero.
    pub fn units(self) -> i128 {
        let whole = self.nanos / NANO;
        whole + self.nanos.signum() * i128::from(self.nanos % NANO != 0)
    }

    /// Whether nothing is left over.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// Reads a quantity; `None` when the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text
            .strip_prefix(['+', '-'])
            .unwrap_or(text)
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(text.len(), |end| {
                end + usize::from(text.starts_with(['+', '-']))
            });
        let (number, suffix) = text.split_at(digits);
        let (scale, shift, form) = suffix_of(suffix)?;
        let negative = number.starts_with('-');
        let number = number.strip_prefix(['+', '-']).unwrap_or(number);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || part.contains('.') {
            return None;
        }
        // Digits beyond what 128 bits hold say "more than anybody has".
        let all: String = whole.chars().chain(part.chars()).take(30).collect();
        let cut = whole.len() + part.len() - all.len();
        let mantissa: i128 = if all.is_empty() { 0 } else { all.parse().ok()? };
        let places = i32::try_from(part.len()).ok()? - i32::try_from(cut).ok()?;
        let nanos = scaled(mantissa.saturating_mul(1_i128 << shift), scale - places + 9);
        Some(Self {
            nanos: if negative { -nanos } else { nanos },
            form,
        })
    }
}

impl Quantity {
    /// The amount in billionths, which is exact.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// In thousandths, rounded up.
    pub fn milli(&self) -> i128 {
        let unit = NANO / 1000;
        self.nanos.div_euclid(unit) + i128::from(self.nanos.rem_euclid(unit) != 0)
    }

    /// Rounded up to thousandths: nobody is given less than that.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        Self {
            nanos: self.milli().saturating_mul(NANO / 1000),
            ..self
        }
    }

    /// As a number for people, who forgive its rounding.
    #[allow(clippy::cast_precision_loss, reason = "it is shown with six places")]
    pub fn as_f64(&self) -> f64 {
        self.milli() as f64 / 1000.0
    }

    /// How many times the other it is.
    #[allow(clippy::cast_precision_loss, reason = "it is shown with six places")]
    pub fn ratio_to(&self, other: &Self) -> f64 {
        self.milli() as f64 / other.milli() as f64
    }

    /// Whether it is so many times the other.
    pub fn is_multiple_of(&self, other: &Self) -> bool {
        other.nanos > 0 && self.nanos % other.nanos == 0
    }

    /// Rounded up to a whole number.
    #[must_use]
    pub fn rounded_to_whole(self) -> Self {
        Self {
            nanos: self.units().saturating_mul(NANO),
            ..self
        }
    }

    /// What is left without the other, written as the first is, unless that is nothing.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nanos: other.nanos.saturating_neg(),
            ..other
        })
    }

    /// Both together, written as the first is, unless that is nothing.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            form: if self.is_zero() {
                other.form
            } else {
                self.form
            },
        }
    }
}

/// Why a text that cannot be parsed is no quantity: it has not the form of one, or no known suffix.
pub fn problem(text: &str) -> &'static str {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if text.is_empty() || !rest.is_empty() {
        MALFORMED
    } else {
        "unable to parse quantity's suffix"
    }
}

/// Power of ten, power of two, and family of a suffix.
fn suffix_of(suffix: &str) -> Option<(i32, u32, Form)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((*power, 0, Form::Decimal));
    }
    if let Some(place) = BINARY.iter().position(|known| *known == suffix) {
        return Some((0, 10 * u32::try_from(place).ok()?, Form::Binary));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-40..=40)
        .contains(&power)
        .then_some((power, 0, Form::Exponent))
}

/// `number` times ten to the `power`, rounded up, and never more than can be held.
fn scaled(number: i128, power: i32) -> i128 {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (factor, power >= 0) {
        (Some(factor), true) => number.saturating_mul(factor),
        (None, true) if number == 0 => 0,
        (None, true) => i128::MAX,
        (Some(factor), false) => number / factor + i128::from(number % factor != 0),
        (None, false) => i128::from(number != 0),
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

/// The canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let units = self.nanos / NANO;
        if self.form == Form::Binary && self.nanos % NANO == 0 && units.unsigned_abs() >= 1024 {
            let (mut left, mut place) = (units, 0);
            while left % 1024 == 0 && place + 1 < BINARY.len() {
                left /= 1024;
                place += 1;
            }
            return write!(f, "{left}{}", BINARY[place]);
        }
        let (mut left, mut place) = (self.nanos, 0);
        while left % 1000 == 0 && place + 1 < DECIMAL.len() {
            left /= 1000;
            place += 1;
        }
        let (suffix, power) = DECIMAL[place];
        match self.form {
            Form::Exponent if power != 0 => write!(f, "{left}e{power}"),
            Form::Exponent => write!(f, "{left}"),
            Form::Decimal | Form::Binary => write!(f, "{left}{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).unwrap().to_string()
    }

    #[test]
    fn the_canonical_form_is_the_shortest_whole_number() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("-1000m", "-1"),
            ("0", "0"),
            (".001", "1m"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "lots", "1x", "1.2.3", "Gi", "1 Gi", "--1", "1ki"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert!(parse("2") > parse("1500m"));
        assert!(parse("1Gi") > parse("1G"));
        assert_eq!(parse("1000Mi"), parse("1048576000"));
    }

    #[test]
    fn a_sum_is_written_as_its_first_part() {
        let parse = |text| Quantity::parse(text).unwrap();
        let mut sum = Quantity::default();
        sum += parse("512Mi");
        sum += parse("1Gi");
        assert_eq!(sum.to_string(), "1536Mi");
        let mut sum = Quantity::whole(0);
        sum += parse("250m");
        sum += parse("1");
        assert_eq!(sum.to_string(), "1250m");
    }

    #[test]
    fn whole_units_and_thousandths_are_rounded_up() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert_eq!(parse("1n").milli(), 1);
        assert_eq!(parse("1.5").milli(), 1_500);
        assert_eq!(parse("100m").units(), 1);
        assert_eq!(parse("1.5Gi").units(), 3 << 29);
        assert_eq!(parse("-3k").units(), -3_000);
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_its_own(text in "[-+]?[0-9]{1,6}(\\.[0-9]{1,4})?(m|k|M|Ki|Mi|Gi|e2|)") {
            let once = canonical(&text);
            prop_assert_eq!(canonical(&once), once.clone());
            prop_assert_eq!(Quantity::parse(&text), Quantity::parse(&once));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Quantity::parse(&text).map(|quantity| quantity.to_string());
        }

        #[test]
        fn no_number_panics(text in "[-+0-9.]{0,60}[eEKMGTPi0-9]{0,4}") {
            let _ = Quantity::parse(&text).map(|quantity| quantity.to_string());
        }
    }
}
