// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Coverage-guided fuzzing of all parsers of external input; run it with scripts/fuzz, which passes -sanitize=fuzzer to
// the compiler for every module, so that libFuzzer measures the coverage of the parsers and not only of the harness. A
// separate package, so that a build of the product does not build it.
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let parsers = Target.Dependency.product(name: "Parsers", package: "approval-token")

let package = Package(
  name: "fuzzing",
  dependencies: [
    .package(name: "approval-token", path: ".."),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
  ],
  targets: [
    // The token server's parsers that do not need its HTTP library, as symbolic links.
    .target(name: "ServerParsers", dependencies: [parsers], swiftSettings: settings),
    .executableTarget(
      name: "fuzz", dependencies: ["ServerParsers", parsers, .product(name: "Logging", package: "swift-log")],
      swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
