//! `FlowSchema`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::validation::at::Causes;
use crate::validation::flow;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct FlowSchema;

impl Strategy for FlowSchema {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        flow::check_schema(object, causes);
    }
}
