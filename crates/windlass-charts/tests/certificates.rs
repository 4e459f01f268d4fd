//! Certificates that templates make, read by another reader.

use windlass_charts::{Chart, File, Options, Values, render};
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

/// The documents that a template makes, each the certificate of one of its values.
fn certificates(template: &str) -> Vec<Vec<u8>> {
    let file = |name: &str, text: &str| File {
        name: name.to_owned(),
        data: text.as_bytes().to_vec(),
    };
    let chart = Chart::from_files(vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/NOTES.txt", template),
    ])
    .unwrap();
    let options = Options {
        now: "2026-01-02T03:04:05Z[UTC]".parse().unwrap(),
        ..Options::default()
    };
    let notes = render(&chart, &Values::new(), &options).unwrap().notes;
    notes
        .split("-----END CERTIFICATE-----\n")
        .filter(|part| part.contains("BEGIN"))
        .map(|part| {
            let whole = format!("{}-----END CERTIFICATE-----\n", part.trim_start());
            parse_x509_pem(whole.as_bytes()).unwrap().1.contents
        })
        .collect()
}

#[test]
fn certificates_signed_by_an_authority_verify() {
    for kind in ["ecdsa", "ed25519"] {
        let template = format!(
            "{{{{ $key := genPrivateKey \"{kind}\" }}}}{{{{ $ca := genCAWithKey \"my ca\" 10 $key }}}}{{{{ $ca.Cert }}}}{{{{ (genSignedCertWithKey \"web\" (list \"10.0.0.1\") (list \"a.example.com\") 5 $ca $key).Cert }}}}"
        );
        let found = certificates(&template);
        let (_, authority) = parse_x509_certificate(&found[0]).unwrap();
        let (_, signed) = parse_x509_certificate(&found[1]).unwrap();
        assert!(authority.is_ca());
        authority.verify_signature(None).unwrap();
        signed
            .verify_signature(Some(authority.public_key()))
            .unwrap();
        assert_eq!(signed.issuer(), authority.subject());
        assert_eq!(signed.subject().to_string(), "CN=web");
        let names = signed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 2);
        let days =
            signed.validity().not_after.timestamp() - signed.validity().not_before.timestamp();
        assert_eq!(days, 5 * 24 * 3600);
    }
}

#[test]
fn certificate_of_an_rsa_key_verifies() {
    let found = certificates("{{ (genCA \"ca\" 1).Cert }}");
    let (_, authority) = parse_x509_certificate(&found[0]).unwrap();
    authority.verify_signature(None).unwrap();
    assert!(authority.is_ca());
}
