"""What happens before and after training may read as much as it likes."""
import torch


def load_weights(net, path: str):
    state = torch.load(path, map_location="cuda")
    for name, value in state.items():
        if value.isnan().any():  # ok: once, at load time
            raise ValueError(f"{name}: {value.flatten()[0].item()}")  # ok: the message of a raise
    net.load_state_dict(state)
    return {name: value.float().norm().item() for name, value in state.items()}  # ok: once, at load time


def export(net, example):
    net.eval()
    out = net(example.cuda()).cpu().numpy()  # ok: export
    torch.onnx.export(net, (example.cuda(),), "net.onnx")
    return out.tolist()  # ok: NumPy


def train(net, loader, opt, path: str):
    norms = load_weights(net, path)
    for x in loader:
        try:
            loss = net(x.cuda(non_blocking=True)).mean()
            loss.backward()
            opt.step()
        except RuntimeError as error:
            raise RuntimeError(f"loss {loss.item()}") from error  # ok: only on failure
        finally:
            opt.zero_grad()
    if sum(norms.values()) > 0:  # ok: Python floats
        export(net, x)
    return {k: v.cpu() for k, v in net.state_dict().items()}  # ok: after training
