//! The comments in the chart's values: above each value stands what the tables of the chart's README say of it.

use std::collections::BTreeMap;

use super::chart::with_plain_links;

/// How many columns a line may have.
const WIDTH: usize = 120;

/// What the rows of the README's tables mean, by the path of each value that a row is about.
struct Meanings(BTreeMap<String, String>);

/// `values.yaml` with a comment above each value of the README. All comments below the first empty line are
/// replaced. A value that is neither in a table itself nor part of one that is, is an error.
pub(crate) fn values(values: &str, readme: &str) -> Result<String, String> {
    let meanings = Meanings::of(readme);
    let mut written = Vec::new();
    let mut lines = values.lines();
    written.extend(lines.by_ref().take_while(|line| !line.is_empty()).map(str::to_owned));
    written.push(String::new());
    // The sections that the line is part of, each with its indentation and whether a row is about it.
    let mut sections: Vec<(usize, &str, bool)> = Vec::new();
    for line in lines.filter(|line| !line.trim_start().starts_with('#')) {
        if let Some((indent, name, value)) = key(line) {
            sections.retain(|(outer, ..)| *outer < indent);
            sections.push((indent, name, false));
            let path = sections.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(".");
            if let Some(meaning) = meanings.of_value(&path, value) {
                written.extend(comment(&meaning, indent));
                if let Some((.., has_row)) = sections.last_mut() {
                    *has_row = true;
                }
            }
            if !value.is_empty() && !sections.iter().any(|(.., has_row)| *has_row) {
                return Err(format!("{path} has no row in a table of the README"));
            }
        }
        written.push(line.to_owned());
    }
    Ok(written.join("\n") + "\n")
}

impl Meanings {
    /// What is said of a value; of an empty section, which fields it may have.
    fn of_value(&self, path: &str, value: &str) -> Option<String> {
        if let Some(meaning) = self.0.get(path) {
            return Some(meaning.clone());
        }
        let below = format!("{path}.");
        let fields: Vec<_> = self.0.keys().filter_map(|it| it.strip_prefix(&below)).collect();
        (value == "{}" && !fields.is_empty()).then(|| format!("Fields: {}.", fields.join(", ")))
    }

    fn of(readme: &str) -> Self {
        let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
        let meanings = rows.filter_map(|row| {
            let (names, cells) = row.split_once(" |")?;
            let meaning = with_plain_links(cells.rsplit_once("| ")?.1);
            Some((names, meaning))
        });
        let by_path = meanings.flat_map(|(names, meaning)| {
            let names = names.split(", ").map(|name| name.trim_matches('`').to_owned());
            names.map(move |name| (name, meaning.clone()))
        });
        Self(by_path.collect())
    }
}

/// The indentation, key and value of a line that has a key.
fn key(line: &str) -> Option<(usize, &str, &str)> {
    let trimmed = line.trim_start();
    let (name, value) = trimmed.split_once(':')?;
    let is_name = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    is_name.then(|| (line.len() - trimmed.len(), name, value.trim()))
}

/// A sentence as lines of a comment.
fn comment(meaning: &str, indent: usize) -> Vec<String> {
    let begin = format!("{}#", " ".repeat(indent));
    let mut lines = vec![begin.clone()];
    for word in meaning.split_whitespace() {
        if let Some(line) = lines.last_mut().filter(|line| line.len() + 1 + word.len() <= WIDTH) {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{begin} {word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::values;

    const README: &str = "| `a.b`, `c.b` | `1` | see [there](../x.md#y) ([D2](x.md)) |\n| `c.d` | | `0` or more | a map |\n";

    #[test]
    fn a_comment_is_the_meaning_of_the_row_and_replaces_what_was_there() {
        let before = "# Head.\n\na:\n  # Old.\n  b: 1\nc:\n  b: 1\n  d:\n    e: {}\n";
        let after = "# Head.\n\na:\n  # see there (docs/x.md) (docs/x.md, D2)\n  b: 1\nc:\n  # see there (docs/x.md) (docs/x.md, D2)\n  b: 1\n  # a map\n  d:\n    e: {}\n";
        assert_eq!(values(before, README).as_deref(), Ok(after));
        assert_eq!(values(after, README).as_deref(), Ok(after), "a second time changes nothing");
    }

    #[test]
    fn a_comment_of_an_empty_section_names_its_fields() {
        let after = values("# Head.\n\nc: {}\n", README);
        assert_eq!(after.as_deref(), Ok("# Head.\n\n# Fields: b, d.\nc: {}\n"));
    }

    #[test]
    fn a_value_without_a_row_is_named() {
        let error = values("# Head.\n\na:\n  x: 1\n", README).expect_err("no row");
        assert_eq!(error, "a.x has no row in a table of the README");
    }
}
