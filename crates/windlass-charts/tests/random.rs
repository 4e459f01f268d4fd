//! Random values depend on the seed and on where they are asked for, and on nothing else.

use std::collections::BTreeSet;

use windlass_charts::{Chart, File, Options, Values, render};

const HELPER: &str = "{{ define \"password\" }}{{ randAlphaNum 12 }}{{ end }}";

fn rendered(template: &str, seed: u8) -> Vec<String> {
    let file = |name: &str, text: &str| File {
        name: name.into(),
        data: text.into(),
    };
    let chart = Chart::from_files(vec![
        file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        file("templates/_h.tpl", HELPER),
        file("templates/a.yaml", template),
    ])
    .unwrap();
    let options = Options {
        seed: [seed; 32],
        ..Options::default()
    };
    let rendered = render(&chart, &Values::new(), &options).unwrap();
    let lines = rendered.manifest();
    let values = lines.lines().filter(|line| line.contains(": "));
    values
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn line_that_is_added_changes_no_other_random_value() {
    let before = rendered(
        "a: {{ randAlphaNum 8 }}\nb: {{ include \"password\" . }}\nc: {{ uuidv4 }}\n",
        1,
    );
    let after = rendered(
        "x: {{ randAlphaNum 8 }}\na: {{ randAlphaNum 8 }}\ny: {{ include \"password\" . }}\nb: {{ include \"password\" . }}\nc: {{ uuidv4 }}\n",
        1,
    );
    for line in &before {
        assert!(after.contains(line), "{line} is not in {after:?}");
    }
    assert_eq!(
        before,
        rendered(
            "a: {{ randAlphaNum 8 }}\nb: {{ include \"password\" . }}\nc: {{ uuidv4 }}\n",
            1
        )
    );
    assert_ne!(
        before,
        rendered(
            "a: {{ randAlphaNum 8 }}\nb: {{ include \"password\" . }}\nc: {{ uuidv4 }}\n",
            2
        )
    );
}

#[test]
fn same_place_asked_again_gives_another_value() {
    let values = rendered(
        "{{ range until 5 }}\nv{{ . }}: {{ randAlphaNum 8 }}{{ randAlphaNum 8 }}\n{{ end }}",
        1,
    );
    let texts: BTreeSet<&str> = values
        .iter()
        .flat_map(|line| {
            let (_, value) = line.split_once(": ").unwrap();
            [&value[..8], &value[8..]]
        })
        .collect();
    assert_eq!(texts.len(), 10, "{values:?}");
}
