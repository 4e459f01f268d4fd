//! The report as one page of HTML that needs nothing else: no network, no other file.
//!
//! For each finding the undisturbed run and the failing one are beside each other, step by step. Each
//! row is in a lane: the user, the objects, what the operator was shown, what it wrote, the faults. A
//! row opens to what changed, and a write to what the operator had not been shown when it wrote.

use std::fmt::Write as _;

use serde_json::Value;

use crate::explore::{Finding, Report};
use crate::report;
use crate::state::changed_fields;
use crate::trace::{Change, Happened, Record};

/// How many fields of a change are shown.
const FIELDS: usize = 30;

const STYLE: &str = "
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:90em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-top:1px solid #ccc;padding-top:1em}
pre{background:#f5f5f5;padding:.8em;overflow:auto}
.runs{display:grid;grid-template-columns:1fr 1fr;gap:0 1em}
.runs>h3{grid-column:1/3;font-size:1em;background:#eee;padding:.3em .6em;margin:.8em 0 .3em}
.row{padding:.1em .5em;border-left:4px solid #ccc;margin:1px 0;overflow-wrap:anywhere}
.row small{color:#777;margin-right:.6em}
.user{border-color:#555;background:#f0f0f0;font-weight:600}
.object{border-color:#bbb;margin-left:1em;color:#555}
.shown{border-color:#3b7dd8;margin-left:2em}
.write{border-color:#2e8b57;margin-left:3em;background:#f2fbf5}
.fault{border-color:#c0392b;background:#fdecea;color:#8e1f14;font-weight:600}
.rest{border-color:#ddd;color:#999}
summary{cursor:pointer}details table{border-collapse:collapse;margin:.3em 0 .5em;font-size:.92em}
details td{border:1px solid #ddd;padding:.1em .5em;vertical-align:top}
.unseen{color:#8e1f14}
.legend span{display:inline-block;margin-right:1em}
@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}pre,.user,.runs>h3{background:#2a2a2a}
.write{background:#1d2a22}.fault{background:#3a1d1a;color:#f3b0a8}.object{color:#aaa}details td{border-color:#444}}
";

/// The whole page.
pub fn page(report: &Report, command: &str) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>windlass explore</title><style>{STYLE}</style>\
         <h1>windlass explore</h1><p><code>{}</code></p><pre>{}</pre>",
        escape(command),
        escape(&report::head(report))
    );
    page.push_str("<ol>");
    for step in &report.steps {
        let _ = write!(page, "<li>{}</li>", escape(step));
    }
    page.push_str("</ol>");
    page.push_str(
        "<p class=\"legend\">lanes: <span class=\"row user\">user</span><span class=\"row object\">objects changed by others</span>\
         <span class=\"row shown\">what the operator was shown</span><span class=\"row write\">what it wrote</span>\
         <span class=\"row fault\">faults</span></p>",
    );
    if report.findings.is_empty() {
        page.push_str("<p><b>Nothing was found.</b></p>");
    }
    for race in &report.races {
        let _ = write!(page, "<h2>Race</h2><p>{}</p>", escape(&race.to_string()));
    }
    for finding in &report.findings {
        of_finding(&mut page, finding, report);
    }
    page.push_str("</html>\n");
    page
}

fn of_finding(page: &mut String, finding: &Finding, report: &Report) {
    let _ = write!(
        page,
        "<h2 id=\"{id}\">{id}: {}</h2><pre>{}</pre>",
        escape(finding.wrong.title().text()),
        escape(&report::finding_text(
            finding,
            &format!("--replay {}", finding.kept.id)
        )),
        id = escape(&finding.kept.id),
    );
    page.push_str("<div class=\"runs\"><h3>undisturbed (left) and with the fault (right)</h3>");
    // The steps of a finding are those of the scenario that it takes.
    let numbers = std::iter::once(0).chain(finding.kept.steps.iter().copied());
    let last = finding
        .records
        .iter()
        .map(|record| record.step)
        .max()
        .unwrap_or_default();
    for (index, number) in numbers.enumerate().take(last + 1) {
        let title = match number.checked_sub(1).and_then(|at| report.steps.get(at)) {
            Some(step) => format!("step {number}: {step}"),
            None => "the operator starts".to_owned(),
        };
        let _ = write!(page, "<h3>{}</h3>", escape(&title));
        for (records, step) in [(&report.reference, number), (&finding.records, index)] {
            page.push_str("<div>");
            for record in records.iter().filter(|record| record.step == step) {
                of_record(page, record);
            }
            page.push_str("</div>");
        }
    }
    page.push_str("</div>");
}

fn of_record(page: &mut String, record: &Record) {
    let at = format!("<small>{:.3}</small>", record.at.as_secs_f64());
    let row = |page: &mut String, lane: &str, text: &str, more: &str| {
        let text = escape(text);
        let _ = if more.is_empty() {
            write!(page, "<div class=\"row {lane}\">{at}{text}</div>")
        } else {
            write!(
                page,
                "<details class=\"row {lane}\"><summary>{at}{text}</summary>{more}</details>"
            )
        };
    };
    match &record.happened {
        Happened::Step(what) => row(page, "user", what, ""),
        Happened::Write {
            request,
            code,
            changes,
            unseen,
            ..
        } => {
            let effect = if changes.is_empty() && *code < 300 {
                ", no effect"
            } else {
                ""
            };
            let mut more: String = changes.iter().map(of_change).collect();
            if unseen.is_empty() {
                more.push_str("<p>It had been shown the latest of everything that it watches and has read.</p>");
            } else {
                let _ = write!(
                    more,
                    "<p class=\"unseen\">It had been shown only older versions of: {}</p>",
                    escape(&unseen.join(", "))
                );
            }
            row(page, "write", &format!("{request} → {code}{effect}"), &more);
        }
        Happened::Other { user, changes } => {
            for change in changes {
                let text = format!("{} {} by {user}", change.kind.as_str(), change.object);
                row(page, "object", &text, &of_change(change));
            }
        }
        // Its outcome is a row, and so is what came after the first list.
        Happened::Attempt(_) | Happened::Event { initial: true, .. } => {}
        Happened::Event { at, revision, .. } => {
            row(
                page,
                "shown",
                &format!("{} (revision {revision})", at.what),
                "",
            );
        }
        Happened::Started => row(page, "rest", "the operator is started", ""),
        Happened::Ended(why) => row(page, "fault", &format!("the operator {why}"), ""),
        Happened::Fault(what) => row(page, "fault", what, ""),
        Happened::Settled => row(page, "rest", "settled", ""),
    }
}

/// The fields of a change, before and after.
fn of_change(change: &Change) -> String {
    let parse = |bytes: &bytes::Bytes| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let after = parse(&change.after);
    let before = change.before.as_ref().map(parse).unwrap_or_default();
    let (before, after) = match change.kind {
        windlass_apiserver::hooks::EventKind::Deleted => (after, Value::Null),
        _ => (before, after),
    };
    let mut table = format!(
        "<p>{} {}</p><table>",
        change.kind.as_str(),
        escape(&change.object)
    );
    let changed = changed_fields(&before, &after);
    for field in changed.iter().take(FIELDS) {
        let _ = write!(
            table,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(field),
            escape(&at(&before, field)),
            escape(&at(&after, field))
        );
    }
    table.push_str("</table>");
    if changed.len() > FIELDS {
        let _ = write!(table, "<p>and {} more fields</p>", changed.len() - FIELDS);
    }
    table
}

/// The value of a field by its path.
fn at(value: &Value, path: &str) -> String {
    let found = crate::state::field(value, path);
    match found {
        None => "–".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use windlass_apiserver::hooks::EventKind;

    use super::*;
    use crate::plan::Point;

    #[test]
    fn page_shows_what_a_write_changed_and_needs_no_other_file() {
        let change = Change {
            object: "webs a in default".to_owned(),
            resource: "webs".to_owned(),
            kind: EventKind::Modified,
            revision: 2,
            before: Some(Bytes::from_static(b"{\"spec\":{\"n\":1}}")),
            after: Bytes::from_static(b"{\"spec\":{\"n\":\"<2>\"}}"),
        };
        let happened = Happened::Write {
            at: Point {
                operator: "operator".to_owned(),
                what: "patch webs a in default (spec.n)".to_owned(),
                nth: 1,
            },
            request: "patch webs a in default".to_owned(),
            code: 200,
            changes: vec![change],
            unseen: vec!["pods b in default".to_owned()],
            conflicts: None,
        };
        let record = Record {
            at: Duration::ZERO,
            step: 0,
            happened,
        };
        let mut page = String::new();
        of_record(&mut page, &record);
        assert!(
            page.contains("<td>spec.n</td><td>1</td><td>&lt;2&gt;</td>"),
            "{page}"
        );
        assert!(
            page.contains("only older versions of: pods b in default"),
            "{page}"
        );
        let whole = super::page(&Report::default(), "./operator");
        for outside in ["http:", "https:", "src=", "<link"] {
            assert!(!whole.contains(outside), "{outside}");
        }
    }
}
