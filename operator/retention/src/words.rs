//! Words of messages that depend on a number, or on what somebody else has written.

use trainjob_api::lifecycle::v1alpha1::status::MissingRule;

/// How much of what somebody has written is quoted, in characters.
const QUOTED: usize = 60;

/// So many objects.
pub(crate) fn objects(count: u64) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

/// One of two words: what is said of one object, or of another number of them.
pub(crate) const fn either<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

/// So many of so many objects wait.
pub(crate) fn wait(count: u64, of: u64) -> String {
    format!("{count} of {} {}", objects(of), either(count, "waits", "wait"))
}

/// What somebody has written, between quotation marks and on one line, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// What these rules allow, in short.
pub(crate) fn rights(rules: &[MissingRule]) -> String {
    let rule = |rule: &MissingRule| {
        let of = |parts: &[String]| parts.join(",");
        let group = of(&rule.api_groups);
        let dot = if group.is_empty() { "" } else { "." };
        format!("{} {}{dot}{group}", of(&rule.verbs), of(&rule.resources))
    };
    let rules: Vec<_> = rules.iter().map(rule).collect();
    rules.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_waits_and_others_wait() {
        for (count, of, expected) in [
            (0, 0, "0 of 0 objects wait"),
            (1, 1, "1 of 1 object waits"),
            (1, 2, "1 of 2 objects waits"),
            (2, 2, "2 of 2 objects wait"),
        ] {
            assert_eq!(wait(count, of), expected);
        }
    }

    #[test]
    fn what_is_quoted_is_on_one_line_and_has_an_end() {
        let long = "ü".repeat(61);
        let cut = format!("\"{}…\"", "ü".repeat(60));
        for (text, expected) in [
            ("", "\"\""),
            ("tomorrow", "\"tomorrow\""),
            ("a\nb", "\"a\\nb\""),
            (&long[..120], &*format!("\"{}\"", "ü".repeat(60))),
            (&long, &*cut),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
