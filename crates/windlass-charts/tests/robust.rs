//! What templates and values of any kind do: no panic, and nothing that does not end.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_charts::{Chart, Error, File, Limits, Options, Rendered, Values, render, values};

fn file(name: &str, text: &str) -> File {
    File {
        name: name.to_owned(),
        data: text.as_bytes().to_vec(),
    }
}

fn chart(template: &str) -> Chart {
    Chart::from_files(vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("values.yaml", "a: 1\nb: [x, 2]\nc: {d: e}\n"),
        file("templates/a.yaml", template),
    ])
    .unwrap()
}

fn rendered(template: &str) -> Result<Rendered, Error> {
    let options = Options {
        limits: Limits {
            steps: 200_000,
            ..Limits::default()
        },
        ..Options::default()
    };
    let result = render(&chart(template), &Values::new(), &options);
    if let Err(Error::Template(message)) = &result {
        assert_ne!(
            message, "rendering template failed",
            "a panic in {template:?}"
        );
    }
    result
}

/// Parts that templates are made of.
fn fragment() -> impl Strategy<Value = String> {
    let names = windlass_charts::function_names();
    let words = [
        "{{",
        "}}",
        "{{-",
        "-}}",
        "(",
        ")",
        "|",
        " ",
        ":=",
        "=",
        "$x",
        "$",
        ".",
        ".Values",
        ".Values.b",
        ".Values.c.d",
        ".Files",
        ".Capabilities",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "block",
        "template",
        "break",
        "continue",
        "\"text\"",
        "`raw`",
        "'c'",
        "0",
        "-1",
        "1.5",
        "1e9",
        "9999999999",
        "nil",
        "true",
        "text",
        "\n",
        "---",
        "a: b",
        "/*",
        "*/",
        "é",
        "\u{0}",
        "\"%s%d%v%100x%[3]q\"",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        prop::sample::select(names).prop_map(|name| format!("{name} ")),
        prop::sample::select(words.to_vec()).prop_map(|word| format!("{{{{ {word} }}}}")),
    ]
}

/// Calls of functions with arguments of all kinds.
fn call() -> impl Strategy<Value = String> {
    let args = [
        "1",
        "-1",
        "0",
        "1.5",
        "\"\"",
        "\"a b\"",
        "\"é\"",
        "nil",
        "true",
        ".Values",
        ".Values.b",
        ".Values.zz",
        "(list 1 \"a\" nil)",
        "(list)",
        "(dict \"k\" (list 1))",
        "now",
        "(until 3)",
        ".Files",
        "\"[a-\"",
        "\"2006-01-02\"",
        "$",
        "99",
        "(mustToDuration \"1s\")",
        "\"1.2.3\"",
        ".Capabilities",
    ];
    // What makes keys or hashes passwords takes too long to be called often.
    let is_quick = |name: &&str| {
        !["gen", "bcrypt", "htpasswd", "derive"]
            .iter()
            .any(|slow| name.starts_with(slow))
    };
    let names: Vec<&str> = windlass_charts::function_names()
        .into_iter()
        .filter(is_quick)
        .collect();
    (
        prop::sample::select(names),
        prop::collection::vec(prop::sample::select(args.to_vec()), 0..5),
    )
        .prop_map(|(name, args)| format!("{{{{ {name} {} }}}}", args.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(23), ..ProptestConfig::default() })]

    #[test]
    fn templates_of_any_parts_do_not_panic(parts in prop::collection::vec(fragment(), 0..20)) {
        let _ = rendered(&parts.concat());
    }

    #[test]
    fn calls_with_any_arguments_do_not_panic(calls in prop::collection::vec(call(), 1..4)) {
        for call in calls {
            let _ = rendered(&call);
        }
    }

    #[test]
    fn values_of_any_text_do_not_panic(text in "([a-c:\\-?,\\[\\]{}#&*!|>'\"%@ \n\t0-9.~<]|: |- |\n  ){0,60}") {
        let _ = values::read(text.as_bytes());
    }

    #[test]
    fn settings_of_any_text_do_not_panic(text in "[a-c.=,\\[\\]{}0-9\\\\-]{0,30}") {
        let _ = values::set(&mut Values::new(), &text);
    }
}

#[test]
fn templates_that_do_not_end_are_stopped() {
    for template in [
        "{{ range until 1000000000 }}x{{ end }}",
        "{{ range 1000000000 }}{{ end }}",
        "{{ repeat 1000000000 \"xxxx\" }}",
        "{{ indent 1000000000 \"a\\nb\" }}",
        "{{ randAlphaNum 1000000000 }}",
        "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
        "{{ define \"a\" }}{{ include \"b\" . }}{{ end }}{{ define \"b\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ $x := \"xxxxxxxxxxxxxxxx\" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}",
        "{{ $x := list 1 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}",
        "{{ define \"t\" }}{{ tpl \"{{ include \\\"t\\\" . }}\" . }}{{ end }}{{ include \"t\" . }}",
    ] {
        let error = rendered(template).unwrap_err();
        assert!(
            matches!(error, Error::Limit(_) | Error::Template(_)),
            "{template}: {error}"
        );
    }
}

#[test]
fn values_that_hold_themselves_are_shown_without_end() {
    for template in [
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toYaml $d | len }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toJson $d | len }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepEqual $d (dict \"d\" $d) }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ printf \"%v\" $d | len }}",
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ merge $d (dict \"d\" $d) | len }}",
    ] {
        let _ = rendered(template);
    }
    let _ = rendered("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ deepCopy $d | len }}");
}

#[test]
fn deeply_nested_input_is_refused() {
    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(rendered(&parens).is_err());
    assert!(rendered(&"{{ if 1 }}".repeat(100_000)).is_err());
    for yaml in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
    ] {
        assert!(values::read(yaml.as_bytes()).is_err());
    }
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(aliases, "a{level}: &a{level} [{items}]").unwrap();
    }
    assert!(values::read(aliases.as_bytes()).is_err());
}

#[test]
fn random_values_with_one_seed_are_equal() {
    let template = "k: {{ randAlphaNum 20 }}{{ uuidv4 }}{{ randInt 0 1000 }}{{ randBytes 8 }}{{ genPrivateKey \"ecdsa\" | sha256sum }}\n";
    let with = |seed: u8| {
        let options = Options {
            seed: [seed; 32],
            ..Options::default()
        };
        render(&chart(template), &Values::new(), &options)
            .unwrap()
            .manifest()
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}
