"""Architectures of torchvision and timm with random weights: each gives a module of tensors and example inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["MODELS", "define_operators"]

Example = tuple[nn.Module, list[Tensor]]
_operators = torch.library.Library("torchvision", "FRAGMENT")


def define_operators() -> None:
    """The names of two compiled operators, which torchvision wants on import and none of these networks uses.

    torchvision has no wheel for a CPU build of torch: of a wheel for CUDA all but its compiled operators works.
    """
    for name in ("nms", "qnms"):
        _operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def _statistics(model: nn.Module) -> nn.Module:
    """Normalisers that have seen something: means of 0 and variances of 1 would hide mistakes."""
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            nn.init.normal_(part.running_mean, std=0.1)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
    return model


def vision(name: str, size: int = 64, **options: Any) -> Callable[[], Example]:
    """A model of torchvision."""

    def make() -> Example:
        import torchvision.models as models

        found = _statistics(models.get_model(name, weights=None, **options))
        return found, [torch.randn(2, 3, size, size)]

    return make


def segmentation(name: str) -> Callable[[], Example]:
    """A model of torchvision that answers with a class for every pixel."""

    class Masks(nn.Module):
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.model(x)["out"]
            return found

    def make() -> Example:
        import torchvision.models as models

        model = models.get_model(name, weights=None, weights_backbone=None, num_classes=5)
        return Masks(_statistics(model)), [torch.randn(2, 3, 64, 64)]

    return make


def clip() -> Example:
    """A video classifier."""
    import torchvision.models as models

    return _statistics(models.get_model("r3d_18", weights=None, num_classes=10)), [torch.randn(2, 3, 4, 32, 32)]


def timm(name: str, size: int = 64, **options: Any) -> Callable[[], Example]:
    """A model of timm."""

    def make() -> Example:
        import timm as library

        return _statistics(library.create_model(name, pretrained=False, **options)), [torch.randn(2, 3, size, size)]

    return make


MODELS: dict[str, Callable[[], Example]] = {
    "AlexNet": vision("alexnet"),
    "VGG-11": vision("vgg11_bn"),
    "ResNet-18": vision("resnet18"),
    "DenseNet-121": vision("densenet121"),
    "GoogLeNet": vision("googlenet", init_weights=False, aux_logits=False),
    "SqueezeNet": vision("squeezenet1_1"),
    "ShuffleNet v2": vision("shufflenet_v2_x0_5"),
    "MobileNet v2": vision("mobilenet_v2"),
    "MobileNet v3": vision("mobilenet_v3_small"),
    "EfficientNet-B0": vision("efficientnet_b0"),
    "RegNet": vision("regnet_y_400mf"),
    "ConvNeXt": timm("convnext_atto"),
    "Swin": timm("swin_tiny_patch4_window7_224", img_size=56, size=56, embed_dim=24, depths=(1, 1, 1, 1)),
    "MLP-Mixer": timm("mixer_s32_224", img_size=64),
    "GhostNet": timm("ghostnet_050"),
    "EfficientFormer": timm("efficientformer_l1", size=224),
    "DeepLab v3": segmentation("deeplabv3_mobilenet_v3_large"),
    "R3D-18": clip,
}
