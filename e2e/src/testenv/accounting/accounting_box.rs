//! Boxes with accounting, for tests that stop or disturb the accounting program.

use std::ops::Deref;

use anyhow::Result;

use super::install::install_accounting;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::{POOL, PooledBox, World};

/// A box in which accounting is installed and neither an operator nor the accounting program runs at first.
#[derive(Debug)]
pub struct AccountingBox(PooledBox);

impl AccountingBox {
    /// A box of the pool.
    pub async fn pooled() -> Result<Self> {
        Self::install(POOL.take().await?).await
    }

    /// A box for one test, with default options. Dropped, it is stopped.
    pub async fn alone() -> Result<Self> {
        Self::install(POOL.take().await?.alone()).await
    }

    /// A new box for one test, with these options. Dropped, it is stopped.
    pub async fn with(options: Options) -> Result<Self> {
        let world = Box::pin(World::without_operator(options)).await?;
        Self::install(world.into()).await
    }

    /// What earlier tests have changed of the program's rights, they get back.
    async fn install(world: PooledBox) -> Result<Self> {
        install_accounting(&world.cluster).await?;
        Ok(Self(world))
    }
}

impl Deref for AccountingBox {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}
