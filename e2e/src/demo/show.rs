//! The demo itself: apply the examples, watch, do what a user would do, until all is over.

use std::env;
use std::io::{self, IsTerminal, Stdout};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::demo::clock::{elapsed, now};
use crate::demo::model::{Deed, Model};
use crate::demo::row::Row;
use crate::demo::scenarios::{self, Course, EXAMPLES, Example};
use crate::demo::screen::Screen;
use crate::demo::seen::{Change, Seen};
use crate::demo::setup::Setup;
use crate::demo::watch::Watches;
use crate::testenv::kinds::train_jobs;
use crate::testenv::{apply, yaml};

/// Between two drawings of the table.
const REFRESH: Duration = Duration::from_millis(200);

/// How long everything may take. It takes half a minute; a busy machine may need more.
const PATIENCE: Duration = Duration::from_mins(3);

const A_DAY: Duration = Duration::from_hours(24);

/// A demo that is going on.
pub struct Show<'a> {
    setup: &'a Setup,
    model: Model,
    screen: Screen<Stdout>,
}

impl<'a> Show<'a> {
    /// A show on `setup`, whose nodes have so many `gpus`.
    #[must_use]
    pub fn new(setup: &'a Setup, gpus: usize) -> Self {
        let out = io::stdout();
        // A terminal that cannot move its cursor is a log.
        let terminal = out.is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { setup, model: Model::default(), screen: Screen::new(out, terminal, gpus, elapsed) }
    }

    /// Plays every example to its end, or until it has taken too long; what became of them is told
    /// by the model.
    pub async fn play(mut self) -> Result<(Model, Screen<Stdout>)> {
        let Setup { client, namespace, programs, .. } = self.setup;
        let mut watches = Watches::begin(client, namespace);
        let mut deeds = JoinSet::new();
        deeds.spawn(apply_examples(client.clone(), namespace.clone()));
        self.screen.say(format_args!("applying {} examples", EXAMPLES.len()), now())?;

        let given_up = Instant::now() + PATIENCE;
        let mut ticks = interval(REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.model.is_over() {
            tokio::select! {
                // What has happened is looked at before anything is done or drawn.
                biased;
                seen = watches.next() => self.see(&seen.context("the watches ended")?)?,
                Some(done) = deeds.join_next() => {
                    for refused in done.context("a deed was lost")?? {
                        self.see(&refused)?;
                    }
                }
                _ = ticks.tick() => self.screen.refresh(self.rows(), now())?,
                status = programs.operator.wait(A_DAY) => bail!("the operator ended: {}", status?),
                status = programs.webhook.wait(A_DAY) => bail!("the webhook ended: {}", status?),
                () = sleep_until(given_up) => {
                    self.screen.say("giving up: it takes too long", now())?;
                    break;
                }
            }
            while let Some(deed) = self.model.next_deed(now()) {
                let job = self.model.begin(deed, now());
                self.screen.say(announcement(deed, job), now())?;
                let performed = perform(deed, job, client.clone(), namespace.clone());
                deeds.spawn(async move {
                    let done = performed.await;
                    done.with_context(|| format!("{deed:?} for {job} was refused"))?;
                    Ok(Vec::new())
                });
            }
        }
        // What was seen last is shown, too.
        self.screen.refresh(self.rows(), now())?;
        Ok((self.model, self.screen))
    }

    fn see(&mut self, seen: &Seen) -> Result<()> {
        self.model.see(seen);
        let told = match &seen.change {
            Change::Told(note) => Some(note.clone()),
            Change::Refused(why) => Some(format!("Refused: {why}")),
            _ => None,
        };
        if let Some(told) = told {
            self.screen.say(format_args!("{:<12}  {told}", seen.job), now())?;
        }
        let rows = self.rows();
        Ok(self.screen.changed(rows, now())?)
    }

    fn rows(&self) -> Vec<Row> {
        self.model.scenarios().map(|(example, scenario)| Row::of(example.job, scenario)).collect()
    }
}

/// Gives what was refused of those that are to be.
async fn apply_examples(client: Client, namespace: String) -> Result<Vec<Seen>> {
    let mut refused = Vec::new();
    for example in EXAMPLES {
        let applied = apply_example(example, &client, &namespace).await;
        match denied(&applied).filter(|_| example.course == Course::Refused) {
            Some(why) => {
                let change = Change::Refused(why);
                refused.push(Seen { at: now(), job: example.job.to_owned(), change });
            }
            None => applied?,
        }
    }
    Ok(refused)
}

async fn apply_example(example: Example, client: &Client, namespace: &str) -> Result<()> {
    apply::apply(client, namespace, yaml::documents(&example.manifest()?)?).await?;
    Ok(())
}

/// What a webhook says that denies something.
fn denied(applied: &Result<()>) -> Option<String> {
    match applied.as_ref().err()?.downcast_ref() {
        Some(kube::Error::Api(status)) if status.code == 403 => Some(status.message.clone()),
        _ => None,
    }
}

fn announcement(deed: Deed, job: &str) -> String {
    let what = match deed {
        Deed::Resume => "resumes it",
        Deed::BringRuntime => "brings its runtime, and applies it again",
        Deed::Remove => "deletes it by hand, an hour before its time",
    };
    format!("{job:<12}  (the demo {what})")
}

async fn perform(deed: Deed, job: &str, client: Client, namespace: String) -> Result<()> {
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &train_jobs());
    match deed {
        Deed::Resume => {
            let patch = Patch::Merge(json!({"spec": {"suspend": false}}));
            jobs.patch(job, &PatchParams::default(), &patch).await?;
        }
        Deed::BringRuntime => {
            let manifest = yaml::documents(&scenarios::runtime("team-runtime")?)?;
            apply::apply(&client, &namespace, manifest).await?;
            for example in EXAMPLES.into_iter().filter(|example| example.job == job) {
                apply_example(example, &client, &namespace).await?;
            }
        }
        Deed::Remove => {
            jobs.delete(job, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}
