//! The functions an expression may call, and what they take and give.
//!
//! They are those of kube-apiserver 1.36's environment for rules. `A` and `B` stand for any type;
//! a type before a dot is what a function is called on.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::authorizer;
use super::types::{Found, Type};

const SIGNATURES: &str = "
_==_(A, A) bool; _!=_(A, A) bool; !_(bool) bool; @not_strictly_false(bool) bool
_?_:_(bool, A, A) A
_[_](list(A), int) A; _[_](map(A, B), A) B
_[?_](list(A), int) optional(A); _[?_](map(A, B), A) optional(B)
_[?_](optional(list(A)), int) optional(A); _[?_](optional(map(A, B)), A) optional(B)
_[_](optional(list(A)), int) optional(A); _[_](optional(map(A, B)), A) optional(B)
@in(A, list(A)) bool; @in(A, map(A, B)) bool
_+_(int, int) int; _+_(uint, uint) uint; _+_(double, double) double; _+_(string, string) string
_+_(bytes, bytes) bytes; _+_(list(A), list(A)) list(A); _+_(timestamp, duration) timestamp
_+_(duration, timestamp) timestamp; _+_(duration, duration) duration
_-_(int, int) int; _-_(uint, uint) uint; _-_(double, double) double
_-_(timestamp, timestamp) duration; _-_(timestamp, duration) timestamp; _-_(duration, duration) duration
_*_(int, int) int; _*_(uint, uint) uint; _*_(double, double) double
_/_(int, int) int; _/_(uint, uint) uint; _/_(double, double) double
_%_(int, int) int; _%_(uint, uint) uint; -_(int) int; -_(double) double
size(string) int; size(bytes) int; size(list(A)) int; size(map(A, B)) int
string.size() int; bytes.size() int; list(A).size() int; map(A, B).size() int
type(A) type; dyn(A) dyn
int(int) int; int(uint) int; int(double) int; int(string) int; int(timestamp) int; int(duration) int
uint(uint) uint; uint(int) uint; uint(double) uint; uint(string) uint
double(double) double; double(int) double; double(uint) double; double(string) double
string(string) string; string(int) string; string(uint) string; string(double) string; string(bool) string
string(bytes) string; string(timestamp) string; string(duration) string
bytes(bytes) bytes; bytes(string) bytes; bool(bool) bool; bool(string) bool
timestamp(string) timestamp; timestamp(timestamp) timestamp; timestamp(int) timestamp
duration(string) duration; duration(duration) duration; duration(int) duration
string.contains(string) bool; string.startsWith(string) bool; string.endsWith(string) bool
string.matches(string) bool; matches(string, string) bool
timestamp.getFullYear() int; timestamp.getMonth() int; timestamp.getDayOfYear() int
timestamp.getDayOfMonth() int; timestamp.getDate() int; timestamp.getDayOfWeek() int
timestamp.getHours() int; timestamp.getMinutes() int; timestamp.getSeconds() int
timestamp.getMilliseconds() int; duration.getHours() int; duration.getMinutes() int
duration.getSeconds() int; duration.getMilliseconds() int
timestamp.getFullYear(string) int; timestamp.getMonth(string) int; timestamp.getDate(string) int
timestamp.getHours(string) int; timestamp.getMinutes(string) int; timestamp.getSeconds(string) int
isURL(string) bool; url(string) url; url.getScheme() string; url.getHost() string
url.getHostname() string; url.getPort() string; url.getEscapedPath() string
url.getQuery() map(string, list(string))
string.find(string) string; string.findAll(string) list(string); string.findAll(string, int) list(string)
list(A).isSorted() bool; list(A).sum() A; list(A).min() A; list(A).max() A
list(A).indexOf(A) int; list(A).lastIndexOf(A) int
string.charAt(int) string; string.indexOf(string) int; string.indexOf(string, int) int
string.lastIndexOf(string) int; string.lastIndexOf(string, int) int
string.lowerAscii() string; string.upperAscii() string; string.trim() string
string.replace(string, string) string; string.replace(string, string, int) string
string.split(string) list(string); string.split(string, int) list(string)
string.substring(int) string; string.substring(int, int) string
list(string).join() string; list(string).join(string) string
string.format(list(dyn)) string; strings.quote(string) string
sets.contains(list(A), list(A)) bool; sets.equivalent(list(A), list(A)) bool; sets.intersects(list(A), list(A)) bool
quantity(string) quantity; isQuantity(string) bool; quantity.sign() int; quantity.isInteger() bool
quantity.asInteger() int; quantity.asApproximateFloat() double
quantity.add(quantity) quantity; quantity.add(int) quantity; quantity.sub(quantity) quantity; quantity.sub(int) quantity
quantity.isLessThan(quantity) bool; quantity.isGreaterThan(quantity) bool; quantity.compareTo(quantity) int
isIP(string) bool; ip(string) ip; ip.isCanonical(string) bool; ip.family() int; ip.isUnspecified() bool
ip.isLoopback() bool; ip.isLinkLocalMulticast() bool; ip.isLinkLocalUnicast() bool; ip.isGlobalUnicast() bool
string(ip) string; isCIDR(string) bool; cidr(string) cidr; cidr.ip() ip; cidr.masked() cidr
cidr.prefixLength() int; cidr.containsIP(ip) bool; cidr.containsIP(string) bool
cidr.containsCIDR(cidr) bool; cidr.containsCIDR(string) bool; string(cidr) string
format.named(string) optional(format); format.validate(string) optional(list(string))
format.dns1123Label() format; format.dns1123Subdomain() format; format.dns1035Label() format
format.qualifiedName() format; format.dns1123LabelPrefix() format; format.dns1123SubdomainPrefix() format
format.dns1035LabelPrefix() format; format.labelValue() format; format.uri() format; format.uuid() format
format.byte() format; format.date() format; format.datetime() format
isSemver(string) bool; isSemver(string, bool) bool; semver(string) semver; semver(string, bool) semver
semver.major() int; semver.minor() int; semver.patch() int; semver.isLessThan(semver) bool
semver.isGreaterThan(semver) bool; semver.compareTo(semver) int
optional.of(A) optional(A); optional.none() optional(A); optional.ofNonZeroValue(A) optional(A)
optional(A).hasValue() bool; optional(A).value() A; optional(A).or(optional(A)) optional(A)
optional(A).orValue(A) A
list(A).distinct() list(A); list(A).flatten() list(dyn); list(A).flatten(int) list(dyn); lists.range(int) list(int)
list(A).reverse() list(A); list(A).slice(int, int) list(A); list(A).sort() list(A)
list(A).first() optional(A); list(A).last() optional(A)
authorizer.path(string) pathcheck; authorizer.group(string) groupcheck
authorizer.serviceAccount(string, string) authorizer; groupcheck.resource(string) resourcecheck
resourcecheck.subresource(string) resourcecheck; resourcecheck.namespace(string) resourcecheck
resourcecheck.name(string) resourcecheck; resourcecheck.fieldSelector(string) resourcecheck
resourcecheck.labelSelector(string) resourcecheck; resourcecheck.check(string) decision
pathcheck.check(string) decision; decision.allowed() bool; decision.errored() bool
decision.reason() string; decision.error() string
";

/// Prefixes of functions that are called on nothing.
const NAMESPACES: &[&str] = &["sets", "strings", "optional", "lists", "format", "ip"];

/// One way to call a function.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    /// What it is called on.
    pub(super) target: Option<Type>,
    pub(super) parameters: Vec<Type>,
    pub(super) result: Type,
}

static FUNCTIONS: LazyLock<HashMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<String, Vec<Overload>> = HashMap::new();
    let mut add = |name: &str, overload: Overload| {
        functions.entry(name.to_owned()).or_default().push(overload);
    };
    for signature in SIGNATURES.split([';', '\n']).map(str::trim) {
        if let Some((name, overload)) = read(signature) {
            add(&name, overload);
        }
    }
    // Everything that has an order can be compared; numbers with other numbers, too.
    let ordered = [
        Type::Bool,
        Type::Int,
        Type::Uint,
        Type::Double,
        Type::String,
        Type::Bytes,
        Type::Timestamp,
        Type::Duration,
    ];
    let numbers = [Type::Int, Type::Uint, Type::Double];
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let same = ordered.iter().map(|ty| (ty.clone(), ty.clone()));
        let cross = numbers.iter().flat_map(|a| {
            let others = numbers.iter().map(|b| (a.clone(), b.clone()));
            others.filter(|(a, b)| std::mem::discriminant(a) != std::mem::discriminant(b))
        });
        for (a, b) in same.chain(cross) {
            add(
                name,
                Overload {
                    target: None,
                    parameters: vec![a, b],
                    result: Type::Bool,
                },
            );
        }
    }
    functions
});

/// The ways to call a function, by its name (with its namespace).
pub(super) fn find(name: &str) -> &'static [Overload] {
    FUNCTIONS.get(name).map_or(&[], Vec::as_slice)
}

/// `sets.contains` for `contains` called on `sets`.
pub(super) fn in_namespace(prefix: &str, name: &str) -> Option<String> {
    let full = format!("{prefix}.{name}");
    (NAMESPACES.contains(&prefix) && FUNCTIONS.contains_key(&full)).then_some(full)
}

impl Overload {
    /// The overload with fresh types for what may be any.
    pub(super) fn instantiate(&self, found: &mut Found) -> Self {
        let fresh = [found.fresh(), found.fresh()];
        let put = |ty: &Type| substitute(ty, &fresh);
        Self {
            target: self.target.as_ref().map(put),
            parameters: self.parameters.iter().map(put).collect(),
            result: put(&self.result),
        }
    }
}

/// In the table `A` and `B` are the unknown types of these numbers.
const ANY: [usize; 2] = [usize::MAX, usize::MAX - 1];

fn substitute(ty: &Type, fresh: &[Type; 2]) -> Type {
    match ty {
        Type::Unknown(at) if *at == ANY[0] => fresh[0].clone(),
        Type::Unknown(at) if *at == ANY[1] => fresh[1].clone(),
        Type::List(item) => Type::List(Box::new(substitute(item, fresh))),
        Type::Optional(inner) => Type::Optional(Box::new(substitute(inner, fresh))),
        Type::Map(key, value) => Type::Map(
            Box::new(substitute(key, fresh)),
            Box::new(substitute(value, fresh)),
        ),
        other => other.clone(),
    }
}

/// Reads `target.name(parameters) result`.
fn read(signature: &str) -> Option<(String, Overload)> {
    let (call, result) = signature.rsplit_once(") ")?;
    match read_type(result) {
        Some(result) => finish(call, &result),
        // The result itself has brackets.
        None => read_bracketed(signature),
    }
}

fn read_bracketed(signature: &str) -> Option<(String, Overload)> {
    let at = signature.match_indices(") ").map(|(at, _)| at);
    at.into_iter().find_map(|at| {
        let result = read_type(&signature[at + 2..])?;
        finish(&signature[..at], &result)
    })
}

fn finish(call: &str, result: &Type) -> Option<(String, Overload)> {
    // The parameters start at the bracket that is open last at the outermost level.
    let mut depth = 0_usize;
    let mut start = None;
    for (at, c) in call.char_indices() {
        match c {
            '(' => {
                if depth == 0 {
                    start = Some(at);
                }
                depth += 1;
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let start = start?;
    let (head, parameters) = (&call[..start], &call[start + 1..]);
    let parameters = split_types(parameters)
        .into_iter()
        .map(read_type)
        .collect::<Option<Vec<_>>>()?;
    let overload = |target| Overload {
        target,
        parameters: parameters.clone(),
        result: result.clone(),
    };
    let Some((target, name)) = head.rsplit_once('.').filter(|_| !head.starts_with('_')) else {
        return Some((head.to_owned(), overload(None)));
    };
    let is_namespace = NAMESPACES.contains(&target) && !is_method(target, name);
    if is_namespace {
        return Some((head.to_owned(), overload(None)));
    }
    Some((name.to_owned(), overload(Some(read_type(target)?))))
}

/// `format` and `ip` are namespaces and types.
fn is_method(target: &str, name: &str) -> bool {
    match target {
        "ip" => name != "isCanonical",
        "format" => name == "validate",
        _ => false,
    }
}

fn split_types(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn read_type(text: &str) -> Option<Type> {
    let inside = |name: &str| {
        text.strip_prefix(name)?
            .strip_prefix('(')?
            .strip_suffix(')')
    };
    if let Some(item) = inside("list") {
        return Some(Type::List(Box::new(read_type(item)?)));
    }
    if let Some(inner) = inside("optional") {
        return Some(Type::Optional(Box::new(read_type(inner)?)));
    }
    if let Some(entry) = inside("map") {
        let parts = split_types(entry);
        let (key, value) = (parts.first()?, parts.get(1)?);
        return Some(Type::Map(
            Box::new(read_type(key)?),
            Box::new(read_type(value)?),
        ));
    }
    Some(match text {
        "A" => Type::Unknown(ANY[0]),
        "B" => Type::Unknown(ANY[1]),
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind,
        "url" => Type::Opaque("kubernetes.URL"),
        "quantity" => Type::Opaque("kubernetes.Quantity"),
        "ip" => Type::Opaque("net.IP"),
        "cidr" => Type::Opaque("net.CIDR"),
        "format" => Type::Opaque("kubernetes.NamedFormat"),
        "semver" => Type::Opaque("kubernetes.Semver"),
        "authorizer" => Type::Opaque(authorizer::AUTHORIZER),
        "pathcheck" => Type::Opaque(authorizer::PATH_CHECK),
        "groupcheck" => Type::Opaque(authorizer::GROUP_CHECK),
        "resourcecheck" => Type::Opaque(authorizer::RESOURCE_CHECK),
        "decision" => Type::Opaque(authorizer::DECISION),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_read() {
        let written = SIGNATURES
            .split([';', '\n'])
            .filter(|line| !line.trim().is_empty());
        for signature in written {
            let signature = signature.trim();
            assert!(read(signature).is_some(), "{signature}");
        }
        assert_eq!(find("join").len(), 2);
        assert_eq!(find("sets.contains").len(), 1);
        assert!(find("contains").iter().all(|one| one.target.is_some()));
        assert_eq!(
            in_namespace("ip", "isCanonical").as_deref(),
            Some("ip.isCanonical")
        );
        assert_eq!(find("family").len(), 1);
    }
}
