//! What the accounting program counts, and that nothing waits for it longer than it takes (`docs/accounting.md`).

mod lives;
