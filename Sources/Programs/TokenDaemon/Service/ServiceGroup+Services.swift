// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle

extension ServiceGroup {
  /// A group of those services that are not nil, which logs nothing.
  /// - Parameter whenOneEnds: without an error, and without having been asked to.
  init(
    _ services: [(any Service)?],
    whenOneEnds: ServiceGroupConfiguration.ServiceConfiguration.TerminationBehavior = .cancelGroup
  ) {
    self.init(
      configuration: ServiceGroupConfiguration(
        services: services.compactMap {
          $0.map { .init(service: NamedService(service: $0), successTerminationBehavior: whenOneEnds) }
        },
        logger: Logger(label: "approval-token.lifecycle") { _ in SwiftLogNoOpLogHandler() }))
  }
}

/// ServiceLifecycle describes each service in its log. For a type without a description, Swift then describes all that
/// the service refers to, which took 2.6 ms of a start.
private struct NamedService: Service, CustomStringConvertible {
  let service: any Service
  let description = "service"

  func run() async throws { try await service.run() }
}
