//! Decimal numbers of any size, for the arithmetic of floats that is done in decimal.

use num_bigint::{BigInt, Sign};

/// How many digits a division gives behind the point.
const DIVISION_DIGITS: i64 = 16;
/// The largest exponent that is worked with.
const MAX_EXPONENT: i64 = 5_000;

/// A coefficient and the power of ten it is multiplied with.
pub(super) struct Decimal {
    coefficient: BigInt,
    exponent: i64,
}

fn ten(power: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power.max(0)).unwrap_or(0))
}

impl Decimal {
    /// Reads `1.5e3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut exponent: i64 = exponent.parse().ok()?;
        let digits = match mantissa.split_once('.') {
            Some((whole, fraction)) => {
                exponent -= i64::try_from(fraction.len()).ok()?;
                format!("{whole}{fraction}")
            }
            None => mantissa.to_owned(),
        };
        Self {
            coefficient: digits.parse().ok()?,
            exponent,
        }
        .checked()
    }

    fn checked(self) -> Option<Self> {
        (self.exponent.abs() <= MAX_EXPONENT).then_some(self)
    }

    /// The coefficients of both at the smaller exponent.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        (
            &self.coefficient * ten(self.exponent - exponent),
            &other.coefficient * ten(other.exponent - exponent),
            exponent,
        )
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self {
            coefficient: a + b,
            exponent,
        }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self {
            coefficient: a - b,
            exponent,
        }
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        Self {
            coefficient: &self.coefficient * &other.coefficient,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The quotient, rounded half away from zero; nothing if the divisor is 0.
    pub(super) fn div(&self, other: &Self) -> Option<Self> {
        if other.coefficient.sign() == Sign::NoSign {
            return None;
        }
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let (numerator, denominator) = if shift >= 0 {
            (&self.coefficient * ten(shift), other.coefficient.clone())
        } else {
            (self.coefficient.clone(), &other.coefficient * ten(-shift))
        };
        let quotient = &numerator / &denominator;
        let rest = &numerator - &quotient * &denominator;
        let rounds = rest.magnitude() * 2_u32 >= *denominator.magnitude();
        let step = if !rounds {
            0
        } else if (numerator.sign() == Sign::Minus) == (denominator.sign() == Sign::Minus) {
            1
        } else {
            -1
        };
        Self {
            coefficient: quotient + step,
            exponent: -DIVISION_DIGITS,
        }
        .checked()
    }

    /// The number as text that can be read as a float.
    pub(super) fn text(&self) -> String {
        format!("{}e{}", self.coefficient, self.exponent)
    }
}
