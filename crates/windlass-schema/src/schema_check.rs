//! What is wrong with the schema of a definition.
//!
//! Three looks: whether it is structural, whether its defaults fit it, and whether its parts may be
//! said together. Rules are compiled and weighed only where nothing else is wrong.

use super::list_check::{keys_of_items, map_items, not_among, set_items};
use super::object::ReadMetadata;
use super::path::{child, index, key};
use super::rules::{self, Refusal};
use super::schema::{AdditionalProperties, Items, META_FIELDS, Schema};
use super::{declare, default_check, field_path, shown, structural};
use windlass_apimachinery::field::{self, Cause};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] = &[
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];
/// What one rule, and what all rules of a schema may cost at the most.
const RULE_LIMIT: u64 = 10_000_000;
const TOTAL_LIMIT: u64 = 100_000_000;

/// With a status subresource the root may say less; an unchanged version may cost what it did.
pub(super) fn check(
    schema: &Schema,
    read: ReadMetadata,
    has_status: bool,
    suppress_cost: bool,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let before = causes.len();
    if has_status {
        check_root(schema, at, causes);
    }
    if schema.nullable {
        causes.push(field::forbidden(
            child(at, "nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let unreadable = structural::unreadable(schema);
    let mut are_rules_checked = false;
    if unreadable.is_none() {
        let mut found = structural::check(schema, at);
        if found.is_empty() {
            default_check::check(schema, read, at, &mut found);
        }
        are_rules_checked = found.is_empty();
        causes.append(&mut found);
    }
    let mut look = Look {
        suppress_cost,
        schema_causes: Vec::new(),
        rule_causes: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let place = Place {
        at: at.to_owned(),
        is_root: true,
        no_defaults: None,
        in_metadata: false,
        uncorrelatable: None,
        rules: are_rules_checked.then_some(Cardinality::Times(1)),
    };
    look.look(schema, &place);
    causes.append(&mut look.schema_causes);
    causes.append(&mut look.rule_causes);
    if let Some(why) = unreadable
        && causes.len() == before
    {
        causes.push(field::invalid(at, &"".into(), why));
    }
    if look.total > TOTAL_LIMIT {
        for (at, _) in look.expensive {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            causes.push(field::forbidden(at, why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        causes.push(field::forbidden(
            at,
            &too_costly(what, look.total, TOTAL_LIMIT),
        ));
    }
}

/// With a status subresource, what the root says must hold for status, too, when that is taken out.
fn check_root(schema: &Schema, at: &str, causes: &mut Vec<Cause>) {
    if !schema.ty.is_empty() && schema.ty != "object" {
        causes.push(field::invalid(
            child(at, "type"),
            &schema.ty.as_str().into(),
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
        ));
    }
    let says_more = schema.nullable
        || schema.default.is_some()
        || !schema.allowed.is_empty()
        || schema.max_properties.is_some()
        || schema.min_properties.is_some()
        || !schema.all_of.is_empty()
        || !schema.any_of.is_empty()
        || !schema.one_of.is_empty()
        || schema.not.is_some()
        || schema.additional_properties.is_some()
        || schema.map_type.is_some();
    if says_more {
        causes.push(field::invalid(
            at,
            &"".into(),
            "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled",
        ));
    }
}

/// How often what a schema describes can be in one object.
#[derive(Clone, Copy)]
enum Cardinality {
    Times(u64),
    Unbounded,
}

#[derive(Clone)]
struct Place {
    at: String,
    is_root: bool,
    /// Why there may be no defaults.
    no_defaults: Option<String>,
    in_metadata: bool,
    /// The list around it whose items are not known again after an update.
    uncorrelatable: Option<String>,
    /// How often its rules can run; nothing where rules are not looked at.
    rules: Option<Cardinality>,
}

impl Place {
    fn below(&self, at: String, schema: &Schema) -> Self {
        Self {
            at,
            is_root: false,
            rules: self.rules.map(|cardinality| times(cardinality, schema)),
            ..self.clone()
        }
    }

    /// Inside of logic there are no rules.
    fn in_logic(&self, at: String) -> Self {
        Self {
            at,
            is_root: false,
            rules: None,
            ..self.clone()
        }
    }
}

fn times(cardinality: Cardinality, schema: &Schema) -> Cardinality {
    let most = match schema.ty.as_str() {
        "object" if schema.additional_properties.is_some() => schema.max_properties,
        "array" => schema.max_items,
        _ => Some(1),
    };
    match (cardinality, most) {
        (Cardinality::Times(times), Some(most)) => {
            Cardinality::Times(times.saturating_mul(u64::try_from(most).unwrap_or(0)))
        }
        _ => Cardinality::Unbounded,
    }
}

struct Look {
    suppress_cost: bool,
    schema_causes: Vec<Cause>,
    rule_causes: Vec<Cause>,
    /// What all rules together can cost.
    total: u64,
    /// The rules that cost most.
    expensive: Vec<(String, u64)>,
}

impl Look {
    fn look(&mut self, schema: &Schema, place: &Place) {
        let before = self.schema_causes.len();
        let at = place.at.as_str();
        self.own(schema, place);
        if schema.unique_items {
            self.schema_causes.push(field::forbidden(
                child(at, "uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
        self.additional(schema, place);
        for (name, property) in &schema.properties {
            let mut below = place.below(key(&child(at, "properties"), name), schema);
            if !matches!(
                schema.map_type.as_deref(),
                None | Some("granular" | "atomic")
            ) {
                below.uncorrelatable.get_or_insert_with(|| at.to_owned());
            }
            if (place.is_root || schema.embedded) && META_FIELDS.contains(&name.as_str()) {
                below.in_metadata = true;
                if place.is_root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.look(property, &below);
        }
        if let Some(inner) = &schema.not {
            self.look(inner, &place.in_logic(child(at, "not")));
        }
        for (part, schemas) in [
            ("allOf", &schema.all_of),
            ("oneOf", &schema.one_of),
            ("anyOf", &schema.any_of),
        ] {
            for (number, inner) in schemas.iter().enumerate() {
                self.look(inner, &place.in_logic(index(&child(at, part), number)));
            }
        }
        for (name, inner) in &schema.definitions {
            self.look(inner, &place.in_logic(key(&child(at, "definitions"), name)));
        }
        if let Some(items) = &schema.items {
            let mut below = place.below(child(at, "items"), schema);
            if !schema.is_list_of("map") {
                below.uncorrelatable.get_or_insert_with(|| at.to_owned());
            }
            match items {
                Items::All(items) => self.look(items, &below),
                Items::Each(each) => {
                    for (number, items) in each.iter().enumerate() {
                        below.at = index(&child(at, "items"), number);
                        self.look(items, &below);
                    }
                }
            }
        }
        self.extensions(schema, at);
        self.rules(schema, place, before);
    }

    fn own(&mut self, schema: &Schema, place: &Place) {
        let at = place.at.as_str();
        let causes = &mut self.schema_causes;
        if !schema.ty.is_empty() && !TYPES.contains(&schema.ty.as_str()) {
            let allowed: Vec<String> = TYPES.iter().map(|ty| format!("\"{ty}\"")).collect();
            let ty = schema.ty.as_str().into();
            causes.push(field::not_supported(child(at, "type"), &ty, &allowed));
        }
        let mut forbid = |is_there: bool, part: &str, why: &str| {
            if is_there {
                causes.push(field::forbidden(child(at, part), why));
            }
        };
        if let Some(why) = &place.no_defaults {
            let why = format!("must not be set {why}");
            forbid(schema.default.is_some(), "default", &why);
        }
        for (is_there, part) in [
            (!schema.id.is_empty(), "id"),
            (schema.additional_items.is_some(), "additionalItems"),
            (!schema.pattern_properties.is_empty(), "patternProperties"),
            (!schema.definitions.is_empty(), "definitions"),
            (schema.dependencies.is_some(), "dependencies"),
            (schema.reference.is_some(), "$ref"),
        ] {
            forbid(is_there, part, &format!("{part} is not supported"));
        }
        forbid(
            schema.ty == "null",
            "type",
            "type cannot be set to null, use nullable as an alternative",
        );
        forbid(
            matches!(&schema.items, Some(Items::Each(each)) if !each.is_empty()),
            "items",
            "items must be a schema object and not an array",
        );
        forbid(
            place.in_metadata && schema.embedded,
            "x-kubernetes-embedded-resource",
            "must not be used inside of resource meta",
        );
    }

    fn additional(&mut self, schema: &Schema, place: &Place) {
        let at = child(&place.at, "additionalProperties");
        let Some(additional) = &schema.additional_properties else {
            return;
        };
        let contradicts = !matches!(additional, AdditionalProperties::Allowed(true));
        if !schema.properties.is_empty() && contradicts {
            self.schema_causes.push(field::forbidden(
                &at,
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        if let AdditionalProperties::Of(values) = additional {
            let mut below = place.below(at, schema);
            if place.in_metadata {
                let why = "inside additionalProperties applying to object metadata";
                below.no_defaults = Some(why.into());
            }
            self.look(values, &below);
        }
    }

    fn extensions(&mut self, schema: &Schema, at: &str) {
        let causes = &mut self.schema_causes;
        let at_type = child(at, "type");
        let ty = schema.ty.as_str();
        let wrong_type = |why: &str| {
            if ty.is_empty() {
                field::required(&at_type, why)
            } else {
                field::invalid(&at_type, &ty.into(), why)
            }
        };
        if schema.preserve_unknown == Some(false) {
            causes.push(field::invalid(
                child(at, "x-kubernetes-preserve-unknown-fields"),
                &false.into(),
                "must be true or undefined",
            ));
        }
        if let Some(map_type) = &schema.map_type {
            if ty != "object" {
                causes.push(wrong_type(
                    "must be object if x-kubernetes-map-type is specified",
                ));
            }
            not_among(
                &child(at, "x-kubernetes-map-type"),
                map_type,
                &["atomic", "granular"],
                causes,
            );
        }
        if let Some(list_type) = &schema.list_type {
            if ty != "array" {
                causes.push(wrong_type(
                    "must be array if x-kubernetes-list-type is specified",
                ));
            } else if list_type == "set" {
                set_items(schema, at, causes);
            }
            not_among(
                &child(at, "x-kubernetes-list-type"),
                list_type,
                &["atomic", "set", "map"],
                causes,
            );
        }
        if !schema.list_map_keys.is_empty() {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            let at = child(at, "x-kubernetes-list-type");
            match schema.list_type.as_deref() {
                None => causes.push(field::required(at, why)),
                Some("map") => {}
                Some(other) => causes.push(field::invalid(at, &other.into(), why)),
            }
        }
        if schema.is_list_of("map") {
            map_items(schema, at, causes);
        }
        if schema.is_list_of("map") || schema.is_list_of("set") {
            keys_of_items(schema, at, causes);
        }
    }

    fn rules(&mut self, schema: &Schema, place: &Place, before: usize) {
        let at = child(&place.at, "x-kubernetes-validations");
        for (number, rule) in schema.rules.iter().enumerate() {
            let at = index(&at, number);
            let causes = &mut self.schema_causes;
            let (source, message) = (rule.rule.trim(), rule.message.trim());
            let broken = |text: &str| text.contains(['\n', '\r']);
            if source.is_empty() {
                causes.push(field::required(child(&at, "rule"), "rule is not specified"));
            } else if !rule.message.is_empty() && message.is_empty() {
                let said = rule.message.as_str().into();
                let why = "must be non-empty if specified";
                causes.push(field::invalid(child(&at, "message"), &said, why));
            } else if broken(message) {
                let said = rule.message.as_str().into();
                let why = "must not contain line breaks";
                causes.push(field::invalid(child(&at, "message"), &said, why));
            } else if broken(source) && message.is_empty() {
                let why = "message must be specified if rule contains line breaks";
                causes.push(field::required(child(&at, "message"), why));
            }
            if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
                let why = "messageExpression must be non-empty if specified";
                causes.push(field::required(child(&at, "messageExpression"), why));
            }
            if let Some(reason) = &rule.reason {
                not_among(&child(&at, "reason"), reason, REASONS, causes);
            }
            if !rule.field_path.is_empty() {
                let said = rule.field_path.as_str().into();
                let mut wrong = |why: &str| {
                    causes.push(field::invalid(child(&at, "fieldPath"), &said, why));
                };
                if rule.field_path.trim().is_empty() {
                    wrong("must be non-empty if specified");
                }
                if broken(&rule.field_path) {
                    wrong("must not contain line breaks");
                }
                if field_path::find(&rule.field_path, schema, true).is_err() {
                    wrong("must be a valid path");
                }
            }
        }
        let Some(cardinality) = place.rules else {
            return;
        };
        if schema.rules.is_empty() || self.schema_causes.len() > before {
            return;
        }
        let is_resource = place.is_root || schema.embedded;
        let Some(declared) = declare::declare(schema, is_resource) else {
            return;
        };
        let times = match cardinality {
            Cardinality::Times(times) => times,
            Cardinality::Unbounded => declare::cardinality(&declared),
        };
        for (number, rule) in schema.rules.iter().enumerate() {
            let at = index(&at, number);
            let compiled = match rules::compile(rule, schema, &declared) {
                Ok(compiled) => compiled,
                Err(refusal) => {
                    let (part, why) = match refusal {
                        Refusal::Rule(why) => ("rule", why),
                        Refusal::Message(why) => ("messageExpression", why),
                    };
                    let shown = shown::rule(rule);
                    let cause = field::invalid_shown(child(&at, part), &shown, &why);
                    self.rule_causes.push(cause);
                    continue;
                }
            };
            let cost = compiled.expression.max_cost.saturating_mul(times);
            self.weigh(&child(&at, "rule"), "estimated rule cost", cost);
            if let Some(message) = &compiled.message {
                let at = child(&at, "messageExpression");
                self.weigh(&at, "estimated messageExpression cost", message.max_cost);
            }
            if !compiled.uses_old {
                if let Some(optional) = rule.optional_old_self {
                    self.rule_causes.push(field::invalid(
                        child(&at, "optionalOldSelf"),
                        &optional.into(),
                        "may not be set if oldSelf is not used in rule",
                    ));
                }
            } else if let Some(list) = &place.uncorrelatable {
                self.rule_causes.push(field::invalid(
                    child(&at, "rule"),
                    &rule.rule.as_str().into(),
                    &format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    ),
                ));
            }
        }
    }

    fn weigh(&mut self, at: &str, what: &str, cost: u64) {
        if !self.suppress_cost && cost > RULE_LIMIT {
            let why = too_costly(what, cost, RULE_LIMIT);
            self.rule_causes.push(field::forbidden(at, &why));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((at.to_owned(), cost));
            self.expensive
                .sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }
}

fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a factor for people")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
