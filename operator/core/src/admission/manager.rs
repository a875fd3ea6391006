//! The name of a manager of a patch: a domain, a slash and a path, such as `kueue.x-k8s.io/manager`.
//!
//! Rule and words are those of Kubernetes for domain-prefixed paths. The length is the schema's to limit.

use super::field::FieldError;

const NO_PREFIX: &str = "must be a domain-prefixed path (such as \"acme.io/foo\")";
const NO_DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
     '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NO_PATH: &str =
    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

/// What is wrong with the manager at `path`.
pub(super) fn check(path: &str, manager: &str) -> Vec<FieldError> {
    if manager.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let (domain, rest) = match manager.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => (domain, rest),
        _ => return vec![FieldError::invalid(path, manager, NO_PREFIX)],
    };
    let mut errors = Vec::new();
    if !is_domain(domain) {
        errors.push(FieldError::invalid(path, domain, NO_DOMAIN));
    }
    if !rest.chars().all(is_of_path) {
        errors.push(FieldError::invalid(path, rest, NO_PATH));
    }
    errors
}

fn is_domain(domain: &str) -> bool {
    let outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    domain.split('.').all(|label| {
        label.starts_with(outer)
            && label.ends_with(outer)
            && label.chars().all(|c| outer(c) || c == '-')
    })
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "spec.runtimePatches[0].manager";

    #[test]
    fn a_domain_and_a_path_are_right() {
        for manager in ["kueue.x-k8s.io/manager", "a/b", "1.io/a/b-c._~%20", "acme.io/(x)"] {
            assert_eq!(check(PATH, manager), [], "{manager}");
        }
    }

    #[test]
    fn anything_else_is_refused_in_the_words_of_kubernetes() {
        for (manager, expected) in [
            ("", vec!["Required value".to_owned()]),
            ("kueue", vec![format!("Invalid value: \"kueue\": {NO_PREFIX}")]),
            ("/b", vec![format!("Invalid value: \"/b\": {NO_PREFIX}")]),
            ("a.io/", vec![format!("Invalid value: \"a.io/\": {NO_PREFIX}")]),
            ("Acme.io/b", vec![format!("Invalid value: \"Acme.io\": {NO_DOMAIN}")]),
            ("a..io/b", vec![format!("Invalid value: \"a..io\": {NO_DOMAIN}")]),
            ("-a.io/b", vec![format!("Invalid value: \"-a.io\": {NO_DOMAIN}")]),
            ("a.io/b c", vec![format!("Invalid value: \"b c\": {NO_PATH}")]),
            (
                "a_b/ü",
                vec![
                    format!("Invalid value: \"a_b\": {NO_DOMAIN}"),
                    format!("Invalid value: \"ü\": {NO_PATH}"),
                ],
            ),
        ] {
            let texts: Vec<_> = check(PATH, manager).iter().map(ToString::to_string).collect();
            let expected: Vec<_> = expected.iter().map(|it| format!("{PATH}: {it}")).collect();
            assert_eq!(texts, expected, "{manager}");
        }
    }
}
