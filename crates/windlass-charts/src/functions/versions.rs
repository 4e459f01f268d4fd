//! Semantic versions.

use super::{Row, Type};
use crate::semver::{Constraints, Version};
use crate::template::error::Error;
use crate::template::object::Object;
use crate::template::value::Value;

const S: Type = Type::Str;

pub(super) const TABLE: &[Row] = &[
    ("semver", &[S], None, |_, args| {
        let version = Version::parse(&args[0].text()).map_err(Error::plain)?;
        Ok(Value::object(Object::Version(version)))
    }),
    ("semverCompare", &[S, S], None, |_, args| {
        let constraints = Constraints::parse(&args[0].text()).map_err(Error::plain)?;
        let version = Version::parse(&args[1].text()).map_err(Error::plain)?;
        Ok(Value::Bool(constraints.allow(&version)))
    }),
];
