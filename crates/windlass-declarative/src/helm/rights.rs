//! The rights that a chart's operator needs, over all branches of its templates.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_charts::{Chart, Error, Need, Purpose, Said, documents, from_yaml, needs};

/// Verbs on objects that a release consists of.
const MAKE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];
const LOOKUP: &[&str] = &["list", "watch"];

/// Rights on one resource and what needs them.
#[derive(Clone, Debug, PartialEq)]
pub struct Right {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Whether the name of the resource was derived from the kind, which the chart does not define.
    pub guessed: bool,
    /// The verbs, in order.
    pub verbs: Vec<String>,
    /// What needs them.
    pub needs: Vec<Need>,
}

/// What a chart's operator needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rights {
    /// The rights, by group and resource.
    pub rights: Vec<Right>,
    /// Objects whose kind depends on values.
    pub unknown: Vec<Need>,
}

/// The rights for all values of a chart.
pub fn rights(chart: &Chart) -> Result<Rights, Error> {
    let defined = defined(chart);
    let mut found: BTreeMap<(String, String), Right> = BTreeMap::new();
    let mut unknown = Vec::new();
    let mut add = |group: &str, resource: &str, guessed: bool, verbs: &[&str], need: &Need| {
        let key = (group.to_owned(), resource.to_owned());
        let right = found.entry(key).or_insert_with(|| Right {
            group: group.to_owned(),
            resource: resource.to_owned(),
            guessed,
            verbs: Vec::new(),
            needs: Vec::new(),
        });
        for verb in verbs {
            if !right.verbs.iter().any(|known| known == verb) {
                right.verbs.push((*verb).to_owned());
            }
        }
        right.verbs.sort();
        if !right.needs.contains(need) {
            right.needs.push(need.clone());
        }
    };
    let mut all = needs(chart)?;
    all.extend(definitions(chart));
    for need in all {
        let (Said::Literal(api_version), Said::Literal(kind)) = (&need.api_version, &need.kind)
        else {
            unknown.push(need);
            continue;
        };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let verbs = match need.purpose {
            Purpose::Make => MAKE,
            Purpose::Lookup => LOOKUP,
        };
        let (resource, guessed) = resource_of(group, kind, &defined);
        add(group, &resource, guessed, verbs, &need);
        // Nobody may give rights they do not have, unless they may do this.
        if need.purpose == Purpose::Make && group == "rbac.authorization.k8s.io" {
            match kind.as_str() {
                "Role" | "ClusterRole" => add(group, &resource, false, &["escalate"], &need),
                "RoleBinding" => {
                    add(group, "roles", false, &["bind"], &need);
                    add(group, "clusterroles", false, &["bind"], &need);
                }
                "ClusterRoleBinding" => add(group, "clusterroles", false, &["bind"], &need),
                _ => {}
            }
        }
    }
    Ok(Rights {
        rights: found.into_values().collect(),
        unknown,
    })
}

/// The files of `crds/` as needs.
fn definitions(chart: &Chart) -> impl Iterator<Item = Need> {
    let literal = |text: &str| Said::Literal(text.to_owned());
    chart.crds().into_iter().map(move |file| Need {
        purpose: Purpose::Make,
        api_version: literal("apiextensions.k8s.io/v1"),
        kind: literal("CustomResourceDefinition"),
        source: file.name,
        line: 1,
        when: Vec::new(),
    })
}

/// The resources that the chart defines, by group and kind.
fn defined(chart: &Chart) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for file in chart.crds() {
        let text = String::from_utf8_lossy(&file.data).into_owned();
        for document in documents(&text) {
            let Ok(object) = from_yaml(document.as_bytes()) else {
                continue;
            };
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let spec = &object["spec"];
            if let (Some(group), Some(kind), Some(plural)) = (
                text(&spec["group"]),
                text(&spec["names"]["kind"]),
                text(&spec["names"]["plural"]),
            ) {
                found.insert((group, kind), plural);
            }
        }
    }
    found
}

/// The resource of a kind, and whether it is a guess.
fn resource_of(
    group: &str,
    kind: &str,
    defined: &BTreeMap<(String, String), String>,
) -> (String, bool) {
    if let Some(plural) = defined.get(&(group.to_owned(), kind.to_owned())) {
        return (plural.clone(), false);
    }
    let is_core = !group.contains('.') || group.ends_with(".k8s.io");
    (plural_of(kind), !is_core)
}

/// The plural of a kind as API servers name resources.
pub fn plural_of(kind: &str) -> String {
    let lower = kind.to_lowercase();
    // These are no regular plurals.
    if lower == "endpoints" {
        return lower;
    }
    let vowel = |c: char| "aeiou".contains(c);
    let mut end = lower.chars().rev();
    match (end.next(), end.next()) {
        (Some('y'), Some(before)) if !vowel(before) => {
            format!("{}ies", &lower[..lower.len() - 1])
        }
        (Some('s' | 'x' | 'z'), _) | (Some('h'), Some('c' | 's')) => format!("{lower}es"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use windlass_charts::File;

    use super::*;

    fn chart(files: &[(&str, &str)]) -> Chart {
        let mut all = vec![File {
            name: "Chart.yaml".to_owned(),
            data: b"apiVersion: v2\nname: web\nversion: 1.0.0\n".to_vec(),
        }];
        all.extend(files.iter().map(|(name, text)| File {
            name: (*name).to_owned(),
            data: text.as_bytes().to_vec(),
        }));
        Chart::from_files(all).unwrap()
    }

    fn shown(rights: &Rights) -> Vec<String> {
        let show = |right: &Right| {
            format!(
                "{}.{} {}",
                right.resource,
                right.group,
                right.verbs.join(",")
            )
        };
        rights.rights.iter().map(show).collect()
    }

    #[test]
    fn branches_that_are_off_count_with_their_condition() {
        let ingress = "{{- if .Values.ingress.enabled }}\n{{- if .Capabilities.APIVersions.Has \"networking.k8s.io/v1\" }}\napiVersion: networking.k8s.io/v1\n{{- else }}\napiVersion: extensions/v1beta1\n{{- end }}\nkind: Ingress\nmetadata:\n  name: x\n{{- end }}\n";
        let rights = rights(&chart(&[("templates/ingress.yaml", ingress)])).unwrap();
        assert_eq!(
            shown(&rights),
            [
                "ingresses.extensions create,delete,get,list,patch,watch",
                "ingresses.networking.k8s.io create,delete,get,list,patch,watch"
            ]
        );
        let need = &rights.rights[0].needs[0];
        assert_eq!(
            (need.source.as_str(), need.line),
            ("web/templates/ingress.yaml", 7)
        );
        assert_eq!(need.when, [".Values.ingress.enabled"]);
    }

    #[test]
    fn helpers_ranges_and_documents_are_followed() {
        let helpers = "{{- define \"api\" -}}\n{{- if .Values.old -}}apps/v1beta1{{- else -}}\n{{- print \"apps/v1\" -}}\n{{- end -}}\n{{- end -}}\n{{- define \"sa\" }}\napiVersion: v1\nkind: ServiceAccount\n{{- end }}\n";
        let all = "{{- $kind := ternary \"StatefulSet\" \"Deployment\" .Values.stateful }}\n{{ range .Values.many }}\n---\napiVersion: {{ include \"api\" . }}\nkind: {{ $kind }}\nspec:\n  kind: Nothing\n{{ end }}\n---\n{{ include \"sa\" . }}\n---\napiVersion: v1\nkind: {{ .Values.kind | default \"Secret\" }}\n---\n{{ toYaml .Values.extra }}\n---\n# nothing\n";
        let rights = rights(&chart(&[
            ("templates/_h.tpl", helpers),
            ("templates/all.yaml", all),
        ]))
        .unwrap();
        assert_eq!(
            shown(&rights),
            [
                "secrets. create,delete,get,list,patch,watch",
                "serviceaccounts. create,delete,get,list,patch,watch",
                "deployments.apps create,delete,get,list,patch,watch",
                "statefulsets.apps create,delete,get,list,patch,watch",
            ]
        );
        let unknown: Vec<String> = rights
            .unknown
            .iter()
            .map(|need| format!("{}:{} {}", need.source, need.line, need.kind))
            .collect();
        assert_eq!(
            unknown,
            [
                "web/templates/all.yaml:13 {{ .Values.kind }}",
                "web/templates/all.yaml:15 {{ toYaml .Values.extra }}"
            ]
        );
    }

    #[test]
    fn lookups_definitions_and_roles_are_named() {
        let rights = rights(&chart(&[
            ("crds/t.yaml", "kind: CustomResourceDefinition\nspec: {group: e.com, names: {kind: Toy, plural: toyz}}\n"),
            ("templates/a.yaml", "{{ $s := lookup \"v1\" \"Secret\" .Release.Namespace \"x\" }}\napiVersion: e.com/v1\nkind: Toy\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n---\napiVersion: other.io/v1\nkind: Policy\n"),
        ]))
        .unwrap();
        assert_eq!(
            shown(&rights),
            [
                "secrets. list,watch",
                "customresourcedefinitions.apiextensions.k8s.io create,delete,get,list,patch,watch",
                "toyz.e.com create,delete,get,list,patch,watch",
                "policies.other.io create,delete,get,list,patch,watch",
                "roles.rbac.authorization.k8s.io create,delete,escalate,get,list,patch,watch",
            ]
        );
        let guessed: Vec<&str> = rights
            .rights
            .iter()
            .filter(|right| right.guessed)
            .map(|right| right.resource.as_str())
            .collect();
        assert_eq!(guessed, ["policies"]);
    }
}
