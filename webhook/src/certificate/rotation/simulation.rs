//! Several replicas, whose requests interleave in every way, with a Secret and two webhook configurations.
//!
//! A replica does here what `self_managed` does: it reads both webhook configurations, then the Secret, writes the
//! bundle, takes a certificate, and changes the Secret; every write is fenced by the version it read.

use std::collections::{HashMap, HashSet};

use proptest::{collection::vec, prelude::*};

use super::*;

const REPLICAS: usize = 3;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settings() -> Settings {
    Settings {
        authority_lifetime: seconds(1_000),
        authority_renew_before: seconds(300),
        lifetime: seconds(200),
        renew_before: seconds(50),
        bundle_lead: seconds(50),
        ..Settings::new("ns".into(), "ca".into(), "hook".into())
    }
}

/// Something that is written only by who knows its newest version.
#[derive(Debug, Clone, Default)]
struct Versioned<T> {
    version: u32,
    content: T,
}

impl<T> Versioned<T> {
    fn write(&mut self, seen: u32, content: T) -> bool {
        let fits = self.version == seen;
        if fits {
            *self = Self { version: seen + 1, content };
        }
        fits
    }
}

/// What is next in a replica's pass, with what it has learnt in it.
#[derive(Debug, Default)]
enum Phase {
    #[default]
    ReadFirst,
    ReadSecond(Versioned<Vec<Certificate>>),
    ReadSecret([Versioned<Vec<Certificate>>; 2]),
    Write(usize, [Versioned<Vec<Certificate>>; 2], Versioned<State>),
    Serve([Versioned<Vec<Certificate>>; 2], Versioned<State>),
    Change(Step, Versioned<State>),
}

#[derive(Debug, Default)]
struct Replica {
    phase: Phase,
    standing: Standing,
    /// What it serves, and the CA that signed it.
    leaf: Option<(Certificate, Certificate)>,
}

struct World {
    /// Seconds since all began.
    time: u64,
    begin: Instant,
    secret: Versioned<State>,
    webhook_configurations: [Versioned<Vec<Certificate>>; 2],
    replicas: [Replica; REPLICAS],
    /// Since when a CA has been in both webhook configurations.
    stood: HashMap<Certificate, u64>,
    /// CAs that had to sign without the lead.
    excused: HashSet<Certificate>,
    made: u32,
    created: u32,
}

impl World {
    fn new() -> Self {
        Self {
            // An hour, so that there is a time before the beginning.
            time: 3_600,
            begin: Instant::now(),
            secret: Versioned::default(),
            webhook_configurations: Default::default(),
            replicas: Default::default(),
            stood: HashMap::new(),
            excused: HashSet::new(),
            made: 0,
            created: 0,
        }
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + seconds(self.time)
    }

    fn certificate(&mut self, lifetime: Duration) -> Certificate {
        self.made += 1;
        let now = self.now();
        Certificate {
            der: self.made.to_be_bytes().to_vec().into(),
            not_before: now,
            not_after: now + lifetime,
        }
    }

    /// Carries out the next request of a replica.
    fn act(&mut self, index: usize) {
        let phase = std::mem::take(&mut self.replicas[index].phase);
        self.replicas[index].phase = match phase {
            Phase::ReadFirst => Phase::ReadSecond(self.webhook_configurations[0].clone()),
            Phase::ReadSecond(first) => {
                Phase::ReadSecret([first, self.webhook_configurations[1].clone()])
            }
            Phase::ReadSecret(read) => Phase::Write(0, read, self.secret.clone()),
            Phase::Write(which, read, secret) => self.write(which, read, secret),
            Phase::Serve(read, secret) => self.serve(index, &read, secret),
            Phase::Change(step, secret) => {
                self.change(step, &secret);
                Phase::ReadFirst
            }
        };
    }

    fn write(
        &mut self,
        which: usize,
        mut read: [Versioned<Vec<Certificate>>; 2],
        secret: Versioned<State>,
    ) -> Phase {
        let now = self.now();
        let content: Vec<_> = bundle(&secret.content, now).into_iter().cloned().collect();
        if secret.content.signer.valid(now).is_some() && read[which].content != content {
            if self.webhook_configurations[which].write(read[which].version, content) {
                read[which] = self.webhook_configurations[which].clone();
            }
            let [first, second] = &self.webhook_configurations;
            self.stood.retain(|ca, _| second.content.contains(ca) && first.content.contains(ca));
            for ca in first.content.iter().filter(|ca| second.content.contains(ca)) {
                self.stood.entry(ca.clone()).or_insert(self.time);
            }
        }
        if which == 0 { Phase::Write(1, read, secret) } else { Phase::Serve(read, secret) }
    }

    fn serve(
        &mut self,
        index: usize,
        read: &[Versioned<Vec<Certificate>>; 2],
        secret: Versioned<State>,
    ) -> Phase {
        let (now, settings, state) = (self.now(), settings(), &secret.content);
        let held = |ca: &&Certificate| read.iter().all(|read| read.content.contains(ca));
        let instant = self.begin + seconds(self.time);
        let stood = state.next.valid(now).filter(held);
        let stood = self.replicas[index].standing.observe(stood, instant);
        if let Some(signer) = state.signer.valid(now).filter(held) {
            let fresh = self.replicas[index].leaf.as_ref().is_some_and(|(leaf, authority)| {
                authority == signer && !is_due(leaf, signer, settings.renew_before, now)
            });
            if !fresh {
                let mut leaf = self.certificate(settings.lifetime);
                leaf.not_after = min(leaf.not_after, signer.not_after);
                self.handed_over(signer);
                self.replicas[index].leaf = Some((leaf, signer.clone()));
            }
        }
        Phase::Change(plan(state, stood, &settings, now), secret)
    }

    fn change(&mut self, step: Step, secret: &Versioned<State>) {
        if matches!(step, Step::Wait(_)) {
            return;
        }
        let settings = settings();
        let new = matches!(step, Step::Create | Step::AddNext)
            .then(|| self.certificate(settings.authority_lifetime));
        let state = after(&secret.content, step, new, &settings, self.now());
        let signer = state.signer.certificate().unwrap().clone();
        if !self.secret.write(secret.version, state) {
            return;
        }
        match step {
            Step::Create => {
                let before = secret.content.signer.certificate();
                assert!(before.is_none_or(|ca| ca.is_expired(self.now())), "it was needed");
                self.created += u32::from(before.is_none());
                self.excused.insert(signer);
            }
            Step::Promote(Reason::LastMoment | Reason::NoSigner) => {
                self.excused.insert(signer);
            }
            Step::Promote(Reason::Stood) => self.has_stood(&signer),
            Step::AddNext | Step::DropPrevious | Step::Remember | Step::Wait(_) => {}
        }
    }

    /// A certificate of this CA is in use from now on.
    fn handed_over(&self, signer: &Certificate) {
        assert!(self.stood.contains_key(signer), "not in both webhook configurations");
        if !self.excused.contains(signer) {
            self.has_stood(signer);
        }
    }

    fn has_stood(&self, ca: &Certificate) {
        let stood = self.stood.get(ca).map(|since| self.time - since);
        let lead = settings().bundle_lead.as_secs();
        assert!(stood.is_some_and(|stood| stood >= lead), "stood for {stood:?} only");
    }

    /// Whoever serves something that is not over is trusted.
    fn is_trusted(&self) {
        for (leaf, authority) in self.replicas.iter().filter_map(|replica| replica.leaf.as_ref()) {
            let trusted =
                self.webhook_configurations.iter().all(|held| held.content.contains(authority));
            assert!(trusted || leaf.is_expired(self.now()), "served and not trusted");
        }
    }

    /// A replica's next request fails. One that writes a bundle is not the end of the pass.
    fn fail(&mut self, index: usize) {
        let phase = std::mem::take(&mut self.replicas[index].phase);
        self.replicas[index].phase = match phase {
            Phase::Write(0, read, secret) => Phase::Write(1, read, secret),
            Phase::Write(_, read, secret) => Phase::Serve(read, secret),
            _ => Phase::ReadFirst,
        };
    }

    /// A replica's pass from beginning to end.
    fn pass(&mut self, index: usize) {
        self.replicas[index].phase = Phase::ReadFirst;
        self.act(index);
        while !matches!(self.replicas[index].phase, Phase::ReadFirst) {
            self.act(index);
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// The next request of a replica.
    Act(usize),
    /// A whole pass of a replica.
    Pass(usize),
    /// The next request of a replica fails.
    Fail(usize),
    /// A replica begins anew and knows nothing.
    Restart(usize),
    /// Seconds pass.
    Later(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0..REPLICAS).prop_map(Event::Act),
        // Some are much faster than others, who act on what was long ago.
        10 => (1..REPLICAS).prop_map(Event::Pass),
        4 => (0..REPLICAS).prop_map(Event::Fail),
        1 => (0..REPLICAS).prop_map(Event::Restart),
        4 => (1..20_u64).prop_map(Event::Later),
        1 => (100..400_u64).prop_map(Event::Later),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// However requests interleave: what is served is trusted and signed by a CA that stood long enough
    /// (these are assertions of the world), and an empty cluster gets one CA.
    #[test]
    fn what_is_served_is_trusted(events in vec(event(), 1..800)) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Act(index) => world.act(index),
                Event::Pass(index) => world.pass(index),
                Event::Fail(index) => world.fail(index),
                Event::Restart(index) => world.replicas[index] = Replica::default(),
                Event::Later(seconds) => world.time += seconds,
            }
            world.is_trusted();
        }
        prop_assert!(world.created <= 1);
        // Whatever was, in the end all agree.
        for _ in 0..8 {
            (0..REPLICAS).for_each(|index| world.pass(index));
        }
        let now = world.now();
        let signer = world.secret.content.signer.valid(now);
        prop_assert!(signer.is_some());
        for replica in &world.replicas {
            prop_assert_eq!(replica.leaf.as_ref().map(|(_, authority)| authority), signer);
        }
        for configuration in &world.webhook_configurations {
            let held: Vec<_> = configuration.content.iter().collect();
            prop_assert_eq!(held, bundle(&world.secret.content, now));
        }
    }

    /// As long as replicas can do their work, there is a certificate at every second that is valid for a
    /// while, and only the first CA signs without having stood.
    #[test]
    fn there_is_always_a_certificate(orders in vec((0..REPLICAS, 0..200_usize), 2_000)) {
        let mut world = World::new();
        (0..REPLICAS).for_each(|index| world.pass(index));
        for (first, restart) in orders {
            world.time += 1;
            if let Some(replica) = world.replicas.get_mut(restart) {
                *replica = Replica::default();
            }
            (0..REPLICAS).for_each(|index| world.pass((first + index) % REPLICAS));
            world.is_trusted();
            let now = world.now();
            for replica in &world.replicas {
                let leaf = replica.leaf.as_ref().map(|(leaf, _)| leaf);
                prop_assert!(leaf.is_some_and(|leaf| !leaf.is_expired(now + seconds(45))));
            }
        }
        prop_assert_eq!(world.excused.len(), 1);
        prop_assert!(world.secret.version > 5, "{}", world.secret.version);
    }
}
