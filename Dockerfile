# The image of trainjob-operator, trainjob-webhook, trainjob-retention and trainjob-accounting: these programs, authorities of
# certificates, nothing else.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" \
#     --tag ghcr.io/trainjob-operator/trainjob-operator:v0.1.0 .
#
# The programs are linked statically with glibc, the one that tests and benchmarks run with, and know no path of the
# machine that built them, so the same sources and tools give the same bytes. Their bill of materials is in the programs
# themselves, where cargo-auditable puts it and scanners of images look for it. The compiler runs on the machine that
# builds, whichever machine it builds for.

# That of rust-toolchain.toml; a test sees to it. The digest below is that of this version.
ARG RUST_VERSION=1.95.0

FROM --platform=$BUILDPLATFORM rust:${RUST_VERSION}-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
ARG RUST_VERSION
# Otherwise clippy and rustfmt would be fetched, too.
ENV RUSTUP_TOOLCHAIN=${RUST_VERSION}
ARG AUDITABLE_VERSION=0.7.7
RUN cargo install --locked --root /usr/local "cargo-auditable@${AUDITABLE_VERSION}"
ARG TARGETARCH BUILDARCH
RUN <<EOF
set -eu
[ "$TARGETARCH" != "$BUILDARCH" ] || exit 0
case $TARGETARCH in arm64) machine=aarch64 ;; amd64) machine=x86_64 ;; esac
rustup target add "$machine-unknown-linux-gnu"
apt-get update
apt-get install --yes --no-install-recommends "gcc-$(echo $machine | tr _ -)-linux-gnu" "libc6-dev-$TARGETARCH-cross"
EOF
WORKDIR /src
COPY . .
ARG SOURCE_DATE_EPOCH=0
RUN <<EOF
set -eu
case $TARGETARCH in arm64) machine=aarch64 ;; amd64) machine=x86_64 ;; esac
TARGET=$machine-unknown-linux-gnu bash .ci/image /out
EOF

FROM scratch
LABEL org.opencontainers.image.title="trainjob-operator" \
      org.opencontainers.image.description="Runs TrainJobs, ends them on time, removes what is finished" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out /
ENV PATH=/usr/bin
# A number, so that the kubelet can see that it is not root.
USER 65532:65532
ENTRYPOINT ["trainjob-operator"]
