//! What the columns of role bindings show, of both kinds.

use serde_json::Value;

use crate::table::text::text;

pub(super) fn of_binding(binding: &Value, column: &str) -> Option<Value> {
    let subjects = |kind: &str| {
        let all = binding["subjects"].as_array().into_iter().flatten();
        let named = all.filter(|one| one["kind"] == kind).map(|one| {
            let name = text(&one["name"]);
            match kind {
                "ServiceAccount" => format!("{}/{name}", text(&one["namespace"])),
                _ => name,
            }
        });
        named.collect::<Vec<_>>().join(", ").into()
    };
    Some(match column {
        "Role" => {
            let role = &binding["roleRef"];
            format!("{}/{}", text(&role["kind"]), text(&role["name"])).into()
        }
        "Users" => subjects("User"),
        "Groups" => subjects("Group"),
        "ServiceAccounts" => subjects("ServiceAccount"),
        _ => return None,
    })
}
