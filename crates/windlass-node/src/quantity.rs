//! Amounts of resources, as whole numbers.

use windlass_apimachinery::Quantity;

/// The value in thousandths, rounded up.
pub(crate) fn millis(text: &str) -> Option<i128> {
    Quantity::parse(text).map(|quantity| quantity.milli())
}

/// The value in whole units, rounded up.
pub(crate) fn units(text: &str) -> Option<i128> {
    Quantity::parse(text).map(Quantity::units)
}

/// A division that rounds up.
pub(crate) fn ceil(value: i128, by: i128) -> i128 {
    let rest = i128::from(value % by > 0);
    value / by + rest
}
