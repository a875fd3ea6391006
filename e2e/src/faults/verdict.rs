//! What came of one case, and how to see it again.

use std::fmt::{self, Display};
use std::time::Duration;

use invariants::Request;

use super::case::Case;
use super::judge::Reference;
use super::life::Life;
use super::scenario::Program;

/// A case that was run.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Which one.
    pub case: Case,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The life went as an undisturbed one.
    Held,
    /// It did not.
    Violated {
        /// What is wrong with it.
        wrong: Vec<String>,
        /// What the operator asked for, in order.
        trace: Vec<String>,
    },
    /// The call did not come, or not both of a pair, so nothing happened to it.
    NotStruck,
}

impl Verdict {
    /// The verdict on a life with a fault in it.
    #[must_use]
    pub fn on(life: &Life, reference: &Reference, case: &Case) -> Self {
        let wrong = reference.judge(life, Some(case));
        if !wrong.is_empty() {
            return Self::Violated { wrong, trace: trace(&life.history.requests) };
        }
        if life.struck < case.strikes() { Self::NotStruck } else { Self::Held }
    }
}

impl Ran {
    /// Whether something was wrong.
    #[must_use]
    pub const fn is_violation(&self) -> bool {
        matches!(self.verdict, Verdict::Violated { .. })
    }
}

impl Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = &self.case;
        match &self.verdict {
            Verdict::Held => write!(f, "{case}: held"),
            Verdict::NotStruck => write!(f, "{case}: a call of it did not come"),
            Verdict::Violated { wrong, trace } => {
                writeln!(f, "VIOLATION in {case}; to see it again:")?;
                let program = match case.scenario.program() {
                    Program::Operator => "",
                    Program::Retention => "--program retention ",
                    Program::Accounting => "--program accounting ",
                };
                write!(f, "  cargo faults {program}--only '{case}'")?;
                wrong.iter().try_for_each(|it| write!(f, "\n  * {it}"))?;
                trace.iter().try_for_each(|it| write!(f, "\n    {it}"))
            }
        }
    }
}

/// What was asked for and answered, watches left out.
fn trace(requests: &[Request]) -> Vec<String> {
    let began = requests.first().map_or(0, |first| first.sent);
    let work = requests.iter().filter(|request| request.verb != "watch");
    work.map(|request| {
        let Request { process, verb, resource, subresource, name, answer, .. } = request;
        let (after, took) = (request.sent - began, request.ended - request.sent);
        let code = |code: Option<u16>| code.map_or("none".to_owned(), |code| code.to_string());
        let (told, served) = (code(answer.code), code(answer.served));
        format!(
            "+{after} ms, process {process}: {verb} {resource} {subresource} {name}: told {told}, served {served}, {took} ms"
        )
    })
    .collect()
}
