//! Amounts in the fields of objects.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
pub(crate) use windlass_apimachinery::Quantity;

/// The amount that a field has; zero when it cannot be read.
pub(crate) fn read(written: &Written) -> Quantity {
    Quantity::parse(written.0.trim()).unwrap_or_default()
}

/// The amount as a field has it.
pub(crate) fn written(quantity: Quantity) -> Written {
    Written(quantity.to_string())
}
